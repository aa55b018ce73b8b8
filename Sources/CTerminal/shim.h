#pragma once
#include <stdint.h>
#include <wchar.h>

// The C library declares wcwidth(3) only for programs with _XOPEN_SOURCE.
extern int wcwidth(wchar_t character);

// The columns that a character takes in the thread's locale; -1 for one that is not printed.
static inline int cterminal_columns(uint32_t character) { return wcwidth((wchar_t)character); }
