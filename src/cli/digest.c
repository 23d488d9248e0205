/* By libcrypto, which libcurl brings anyway: without the one there are no downloads, and nothing to check. */
#include "digest.h"

#include "cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef DV_CURL

#include <openssl/evp.h>

enum { AT_ONCE = 1 << 16, MD5_BYTES = (DIGEST_TEXT - 1) / 2 };

/* Adds all of a stream. */
static int add_stream(EVP_MD_CTX *sum, FILE *stream) {
    static char some[AT_ONCE];
    int fine = 1;
    for (size_t got; (got = fread(some, 1, sizeof some, stream)) > 0;)
        fine &= EVP_DigestUpdate(sum, some, got) == 1;
    return fine;
}

/* The context may be NULL: then libcrypto refuses, as it does where rules of the machine forbid MD5. */
static dv_status digest_stream(EVP_MD_CTX *sum, FILE *stream, const char *path, char text[DIGEST_TEXT],
                               dv_error *error) {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned count = 0;
    int fine = sum != NULL && EVP_DigestInit_ex(sum, EVP_md5(), NULL) == 1 && add_stream(sum, stream) &&
               EVP_DigestFinal_ex(sum, bytes, &count) == 1 && count == MD5_BYTES;
    if (ferror(stream))
        return cli_error(error, DV_ERROR_IO, "could not read %.150s: %s: call it again", path, strerror(errno));
    if (!fine)
        return cli_error(error, DV_ERROR_UNSUPPORTED, "libcrypto makes no MD5 here: download the data set yourself");
    for (int i = 0; i < MD5_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return DV_OK;
}

dv_status digest_of_file(const char *path, char text[DIGEST_TEXT], dv_error *error) {
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return cli_error(error, DV_ERROR_IO, "could not read %.150s: %s: call it again", path, strerror(errno));
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    dv_status status = digest_stream(sum, stream, path, text, error);
    EVP_MD_CTX_free(sum);
    fclose(stream);
    return status;
}

#else

dv_status digest_of_file(const char *path, char text[DIGEST_TEXT], dv_error *error) {
    (void)path, (void)text;
    return cli_error(error, DV_ERROR_UNSUPPORTED, "this program was built without libcrypto");
}

#endif
