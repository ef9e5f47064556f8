#pragma once
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include "ssl-shim.h"

// Put together from other macros, which Swift does not import.
static const unsigned long APNS_XN_FLAG_RFC2253 = XN_FLAG_RFC2253;
