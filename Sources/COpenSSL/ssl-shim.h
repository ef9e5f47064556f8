#pragma once

// Function-like macros of <openssl/ssl.h> and <openssl/bio.h>, which Swift cannot import.

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

static const uint64_t APNS_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;
static const uint64_t APNS_SSL_OP_NO_TICKET = SSL_OP_NO_TICKET;
static const uint64_t APNS_SSL_OP_NO_COMPRESSION = SSL_OP_NO_COMPRESSION;
static const uint64_t APNS_SSL_OP_IGNORE_UNEXPECTED_EOF = SSL_OP_IGNORE_UNEXPECTED_EOF;

// Macro over SSL_CTX_ctrl.
static inline int apns_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
  return (int)SSL_CTX_set_min_proto_version(context, version);
}
static inline int apns_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
  return (int)SSL_CTX_set_max_proto_version(context, version);
}
static inline void apns_SSL_CTX_release_buffers(SSL_CTX *context) {
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}
static inline void apns_SSL_CTX_no_session_cache(SSL_CTX *context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}
static inline int apns_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
  return (int)SSL_set_tlsext_host_name(ssl, name);
}
// The issuer chain of the certificate that was set last, without that certificate. Owned by the context.
static inline STACK_OF(X509) *apns_SSL_CTX_get0_chain_certs(SSL_CTX *context) {
  STACK_OF(X509) *chain = NULL;
  SSL_CTX_get0_chain_certs(context, &chain);
  return chain;
}

// Macro over BIO_ctrl with an out parameter.
static inline long apns_BIO_get_mem_data(BIO *bio, char **data) { return BIO_get_mem_data(bio, data); }
