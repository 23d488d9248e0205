/* By libcrypto, which is opened for it and which libcurl brings anyway: without the one there are no downloads, and
 * nothing to check. */
#include "digest.h"

#include "cli.h"
#include "late.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef DV_CURL

#include <openssl/evp.h>

static struct {
    __typeof__(EVP_MD_CTX_new) *new;
    __typeof__(EVP_MD_CTX_free) *free;
    __typeof__(EVP_md5) *md5;
    __typeof__(EVP_DigestInit_ex) *begin;
    __typeof__(EVP_DigestUpdate) *add;
    __typeof__(EVP_DigestFinal_ex) *end;
} crypto;

static const late_function functions[] = {
    {"EVP_MD_CTX_new", &crypto.new},      {"EVP_MD_CTX_free", &crypto.free}, {"EVP_md5", &crypto.md5},
    {"EVP_DigestInit_ex", &crypto.begin}, {"EVP_DigestUpdate", &crypto.add}, {"EVP_DigestFinal_ex", &crypto.end},
};

enum { AT_ONCE = 1 << 16, MD5_BYTES = (DIGEST_TEXT - 1) / 2 };

/* Adds all of a stream. */
static int add_stream(EVP_MD_CTX *sum, FILE *stream) {
    static char some[AT_ONCE];
    int fine = 1;
    for (size_t got; (got = fread(some, 1, sizeof some, stream)) > 0;)
        fine &= crypto.add(sum, some, got) == 1;
    return fine;
}

/* The context may be NULL: then libcrypto refuses, as it does where rules of the machine forbid MD5. */
static dv_status digest_stream(EVP_MD_CTX *sum, FILE *stream, const char *path, char text[DIGEST_TEXT],
                               dv_error *error) {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned count = 0;
    int fine = sum != NULL && crypto.begin(sum, crypto.md5(), NULL) == 1 && add_stream(sum, stream) &&
               crypto.end(sum, bytes, &count) == 1 && count == MD5_BYTES;
    if (ferror(stream))
        return cli_error(error, DV_ERROR_IO, "could not read %.150s: %s: call it again", path, strerror(errno));
    if (!fine)
        return cli_error(error, DV_ERROR_UNSUPPORTED, "libcrypto makes no MD5 here: download the data set yourself");
    for (int i = 0; i < MD5_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return DV_OK;
}

dv_status digest_of_file(const char *path, char text[DIGEST_TEXT], dv_error *error) {
    dv_status status = late_open(DV_CRYPTO, functions, sizeof functions / sizeof *functions, error);
    if (status != DV_OK)
        return status;
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return cli_error(error, DV_ERROR_IO, "could not read %.150s: %s: call it again", path, strerror(errno));
    EVP_MD_CTX *sum = crypto.new();
    status = digest_stream(sum, stream, path, text, error);
    crypto.free(sum);
    fclose(stream);
    return status;
}

#else

dv_status digest_of_file(const char *path, char text[DIGEST_TEXT], dv_error *error) {
    (void)path, (void)text;
    return cli_error(error, DV_ERROR_UNSUPPORTED, "this program was built without libcrypto");
}

#endif
