#pragma once
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include "ssl-shim.h"

// Computes a SHA-256 digest in one call. The EVP interface allocates memory and looks up the algorithm, which takes
// longer than hashing a few bytes.
static inline int apns_SHA256(const void *bytes, size_t count, void *digest) {
#ifdef OPENSSL_NO_DEPRECATED_3_0
  return EVP_Digest(bytes, count, (unsigned char *)digest, NULL, EVP_sha256(), NULL);
#else
  SHA256_CTX context;
  return SHA256_Init(&context) && SHA256_Update(&context, bytes, count) && SHA256_Final((unsigned char *)digest, &context);
#endif
}

// Composed of other macros, which Swift does not import.
static const unsigned long APNS_XN_FLAG_RFC2253 = XN_FLAG_RFC2253;
