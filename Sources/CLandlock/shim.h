#pragma once
#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// The C library has no functions for Landlock, and Swift calls neither syscall(2) nor prctl(2), which are variadic. The
// structures are written out because Debian 12's header knows only the first three ABIs. Each returns −1 with errno.
// https://docs.kernel.org/userspace-api/landlock.html

// An older kernel, which knows fewer fields, accepts the struct if the other fields are zero.
struct pw_landlock_ruleset { uint64_t file_system, network, scopes; };
struct pw_landlock_path { uint64_t access; int32_t parent; } __attribute__((packed));

// The running kernel's version of Landlock, from 1; -1 without Landlock.
static inline long pw_landlock_abi(void) {
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
}

static inline int pw_landlock_create(struct pw_landlock_ruleset ruleset) {
    return (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof ruleset, 0);
}

static inline int pw_landlock_allow(int ruleset, struct pw_landlock_path path) {
    return (int)syscall(SYS_landlock_add_rule, ruleset, 1, &path, 0);
}

static inline int pw_landlock_restrict(int ruleset) {
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

static inline int pw_no_new_privileges(void) {
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

// Makes any system call by its number, to test what the sandbox refuses. If the call creates a child process, the child
// exits at once.
static inline long pw_try(long number, long a, long b, long c, long d) {
    pid_t us = getpid();
    long result = syscall(number, a, b, c, d, 0, 0);
    if (result == 0 && getpid() != us) _exit(0);
    return result;
}
