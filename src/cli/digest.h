/* The MD5 of a file, by which the archives of CIFAR are published. Good against damage, not against malice. */
#ifndef DV_CLI_DIGEST_H
#define DV_CLI_DIGEST_H

#include <division/status.h>

enum { DIGEST_TEXT = 33 };

/* Writes the digest in hexadecimal. Fails where the file can't be read, or where libcrypto does not do it. */
dv_status digest_of_file(const char *path, char text[DIGEST_TEXT], dv_error *error);

#endif
