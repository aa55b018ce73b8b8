#pragma once
#include <errno.h>
#include <seccomp.h>

// SCMP_ACT_ERRNO is a function-like macro, which Swift does not import; it imports the others with another type.
static inline uint32_t pw_seccomp_refuse(int error) { return SCMP_ACT_ERRNO(error); }
static inline uint32_t pw_seccomp_allow(void) { return SCMP_ACT_ALLOW; }
static inline uint32_t pw_seccomp_kill(void) { return SCMP_ACT_KILL_PROCESS; }

// Arguments that the filter looks at, and that the C library hides behind _GNU_SOURCE.
static const int pw_clone_thread = 0x10000;
static const int pw_at_empty_path = 0x1000;
static const int pw_pr_set_name = 15;
