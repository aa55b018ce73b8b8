#pragma once

// PCRE2 for UTF-8. Its function names are macros, which Swift does not import.
// Reference: https://www.pcre.org/current/doc/html/
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

typedef pcre2_code pw_pcre_code;
typedef pcre2_match_data pw_pcre_match;

// NULL for an invalid pattern; then `code` and `offset` have the error and its place.
static inline pw_pcre_code *_Nullable pw_pcre_compile(
    const char *_Nonnull pattern, size_t length, int *_Nonnull code, size_t *_Nonnull offset
) {
    return pcre2_compile((PCRE2_SPTR)pattern, length, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, code, offset, NULL);
}

static inline void pw_pcre_free(pw_pcre_code *_Nonnull code) { pcre2_code_free(code); }

static inline int pw_pcre_groups(pw_pcre_code *_Nonnull code) {
    uint32_t count = 0;
    pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &count);
    return (int)count;
}

static inline void pw_pcre_explain(int code, char *_Nonnull text, size_t size) {
    pcre2_get_error_message(code, (PCRE2_UCHAR *)text, size);
}

static inline pw_pcre_match *_Nullable pw_pcre_new_match(pw_pcre_code *_Nonnull code) {
    return pcre2_match_data_create_from_pattern(code, NULL);
}

static inline void pw_pcre_free_match(pw_pcre_match *_Nonnull match) { pcre2_match_data_free(match); }

// Searches for the next match from `start` on, in at most `steps` steps. Positive if there is one, PCRE2_ERROR_NOMATCH
// if there is none, another negative number if the search failed, for example after too many steps.
static inline int pw_pcre_match_from(
    pw_pcre_code *_Nonnull code, const char *_Nonnull text, size_t length, size_t start, unsigned int steps,
    pw_pcre_match *_Nonnull match
) {
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    if (limits == NULL) { return PCRE2_ERROR_NOMEMORY; }
    pcre2_set_match_limit(limits, steps);
    pcre2_set_heap_limit(limits, 1024);
    int result = pcre2_match(code, (PCRE2_SPTR)text, length, start, 0, match, limits);
    pcre2_match_context_free(limits);
    return result;
}

static inline int pw_pcre_no_match(void) { return PCRE2_ERROR_NOMATCH; }

// The range of a group; group 0 is the whole match. 0 for a group that is not part of the match.
static inline int pw_pcre_group(
    pw_pcre_match *_Nonnull match, int group, size_t *_Nonnull start, size_t *_Nonnull end
) {
    PCRE2_SIZE *places = pcre2_get_ovector_pointer(match);
    if ((uint32_t)group >= pcre2_get_ovector_count(match) || places[2 * group] == PCRE2_UNSET) { return 0; }
    *start = places[2 * group];
    *end = places[2 * group + 1];
    return *start <= *end;
}
