#pragma once
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

// The C library declares syncfs(2) and sync_file_range(2) only for programs with _GNU_SOURCE, and Swift can't call
// syscall(2), which is variadic.

// Syncs the whole file system of `descriptor`. 0, or -1 with errno.
static inline int csync_file_system(int descriptor) { return (int)syscall(SYS_syncfs, descriptor); }

static inline int csync_range(int descriptor, unsigned int flags)
{
#ifdef SYS_sync_file_range2
    return (int)syscall(SYS_sync_file_range2, descriptor, flags, 0L, 0L);
#else
    return (int)syscall(SYS_sync_file_range, descriptor, 0L, 0L, flags);
#endif
}

// Starts writing a file's dirty pages, and does not wait for them. 0, or -1 with errno, as if there is no space.
static inline int csync_begin(int descriptor) { return csync_range(descriptor, 2); }

// 0, or -1 with errno if a write of this file's bytes has failed and was not reported yet. Syncs nothing.
static inline int csync_failed_write(int descriptor) { return csync_range(descriptor, 1); }

// The kind of file system that `descriptor` is on, by the numbers of statfs(2); -1 with errno.
static inline long csync_file_system_type(int descriptor)
{
    struct statfs info;
    return fstatfs(descriptor, &info) == 0 ? (long)info.f_type : -1;
}
