#pragma once
#include <curl/curl.h>

// What Swift cannot call of libcurl, each with a fixed number of arguments. The parentheses around the names step
// round curl's type-checking macros of the same name, which only understand constant options.

// curl_easy_setopt is variadic: one function for each type of argument.
static inline CURLcode ccurl_set_long(CURL *_Nonnull easy, CURLoption option, long value) {
    return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode ccurl_set_offset(CURL *_Nonnull easy, CURLoption option, curl_off_t value) {
    return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode ccurl_set_text(CURL *_Nonnull easy, CURLoption option, const char *_Nullable value) {
    return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode ccurl_set_pointer(CURL *_Nonnull easy, CURLoption option, void *_Nullable value) {
    return (curl_easy_setopt)(easy, option, value);
}
static inline CURLcode ccurl_set_data_callback(CURL *_Nonnull easy, CURLoption option,
                                               size_t (*_Nonnull callback)(char *_Nullable, size_t, size_t,
                                                                           void *_Nullable)) {
    return (curl_easy_setopt)(easy, option, callback);
}
static inline CURLcode ccurl_set_socket_callback(CURL *_Nonnull easy,
                                                 curl_socket_t (*_Nonnull callback)(void *_Nullable, curlsocktype,
                                                                                    struct curl_sockaddr *_Nullable)) {
    return (curl_easy_setopt)(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
}
static inline CURLcode ccurl_set_seek_callback(CURL *_Nonnull easy,
                                               int (*_Nonnull callback)(void *_Nullable, curl_off_t, int)) {
    return (curl_easy_setopt)(easy, CURLOPT_SEEKFUNCTION, callback);
}
static inline CURLcode ccurl_set_request_callback(CURL *_Nonnull easy,
                                                  int (*_Nonnull callback)(void *_Nullable, char *_Nullable,
                                                                           char *_Nullable, int, int)) {
    return (curl_easy_setopt)(easy, CURLOPT_PREREQFUNCTION, callback);
}

// curl_easy_getinfo is variadic too. If curl has no value, the result is 0 or null, and no download fails for that.
static inline long ccurl_get_long(CURL *_Nonnull easy, CURLINFO info) {
    long value = 0;
    return (curl_easy_getinfo)(easy, info, &value) == CURLE_OK ? value : 0;
}
static inline curl_off_t ccurl_get_offset(CURL *_Nonnull easy, CURLINFO info) {
    curl_off_t value = 0;
    return (curl_easy_getinfo)(easy, info, &value) == CURLE_OK ? value : 0;
}
static inline const char *_Nullable ccurl_get_text(CURL *_Nonnull easy, CURLINFO info) {
    char *value = NULL;
    return (curl_easy_getinfo)(easy, info, &value) == CURLE_OK ? value : NULL;
}

// curl_multi_setopt is variadic.
static inline CURLMcode ccurl_multi_set_long(CURLM *_Nonnull multi, CURLMoption option, long value) {
    return (curl_multi_setopt)(multi, option, value);
}

// curl_share_setopt is variadic.
static inline CURLSHcode ccurl_share_cookies(CURLSH *_Nonnull share) {
    return (curl_share_setopt)(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE);
}

// The result of a finished transfer lies in a union inside CURLMsg.
static inline CURLcode ccurl_message_result(const CURLMsg *_Nonnull message) {
    return message->data.result;
}

// Macros with casts in them, which the importer leaves out.
static inline int ccurl_write_pause(void) { return (int)CURL_WRITEFUNC_PAUSE; }
static inline int ccurl_go_on(void) { return (int)CURLPAUSE_CONT; }
static inline long ccurl_auth_digest(void) { return (long)CURLAUTH_DIGEST; }
static inline long ccurl_auth_basic(void) { return (long)CURLAUTH_BASIC; }
static inline curl_socket_t ccurl_bad_socket(void) { return CURL_SOCKET_BAD; }
