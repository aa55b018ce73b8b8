#pragma once

// OpenSSL's libcrypto, which libcurl has loaded already. Reference: https://docs.openssl.org/3.0/man3/
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
