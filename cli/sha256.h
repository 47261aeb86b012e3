/* sha256.h - SHA-256 (FIPS 180-4) of a stream of bytes. */
#ifndef LOAM_CLI_SHA256_H
#define LOAM_CLI_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} sha256;

void sha256_begin(sha256 *s);
void sha256_add(sha256 *s, const void *data, size_t n);
void sha256_end(sha256 *s, char hex[65]); /* lower-case hexadecimal, terminated */

#endif
