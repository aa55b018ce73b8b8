internal import CSeccomp
internal import Glibc
internal import SystemPackage

/// Restricts all threads of the process to a short list of system calls, permanently.
///
/// Any other call fails with `EPERM` and has no effect: a library that tries more than it needs falls back instead of
/// crashing. https://man7.org/linux/man-pages/man3/seccomp_init.3.html
enum SystemCallFilter {
    static func load() throws(Errno) {
        guard let filter = seccomp_init(pw_seccomp_refuse(EPERM)) else { throw .noMemory }
        defer { seccomp_release(filter) }
        try check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1))
        try check(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, pw_seccomp_kill()))
        for name in allowed { try add(pw_seccomp_allow(), name, to: filter) }
        for (name, conditions) in allowedIf { try add(pw_seccomp_allow(), name, conditions, to: filter) }
        for name in unknown { try add(pw_seccomp_refuse(ENOSYS), name, to: filter) }
        for name in ignored { try add(pw_seccomp_refuse(0), name, to: filter) }
        try check(seccomp_load(filter))
    }

    private static func add(
        _ action: UInt32, _ name: String, _ conditions: [scmp_arg_cmp] = [], to filter: scmp_filter_ctx,
    ) throws(Errno) {
        let number = seccomp_syscall_resolve_name(name)
        // A call that this version of libseccomp does not know stays refused.
        guard number != -1 else { return }
        try check(seccomp_rule_add_array(filter, action, number, UInt32(conditions.count), conditions))
    }

    /// libseccomp returns the negative error.
    private static func check(_ code: Int32) throws(Errno) {
        guard code == 0 else { throw Errno(rawValue: -code) }
    }
}

/// The list is short since pixels need only memory, threads and a clock; files and the socket are open before the
/// filter.
extension SystemCallFilter {
    static let allowed = [
        // Memory. Orc writes its generated code for scaling into anonymous memory if it gets no file for it.
        "brk", "madvise", "membarrier", "mmap", "mprotect", "mremap", "munmap",
        // Threads, which libvips, libaom and dav1d start while they run.
        "exit", "exit_group", "futex", "get_robust_list", "getcpu", "gettid", "rseq", "sched_getaffinity",
        "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_yield", "set_robust_list", "set_tid_address",
        // Signals to the process itself.
        "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigreturn", "rt_sigsuspend",
        "sigaltstack",
        // Open files, and the socket that delivers them.
        "close", "dup", "fadvise64", "fallocate", "fdatasync", "fstat", "fsync", "ftruncate", "lseek", "poll", "ppoll",
        "pread64", "preadv", "pwrite64", "pwritev", "read", "readv", "recvmsg", "sendmsg", "umask", "write", "writev",
        // Clocks, and information about the process and the machine.
        "clock_getres", "clock_gettime", "clock_nanosleep", "getegid", "geteuid", "getgid", "getpid", "getppid",
        "getrandom", "getrusage", "gettimeofday", "getuid", "nanosleep", "sysinfo", "time", "times", "uname",
    ]

    /// Allowed only with some arguments; a name that is listed twice is allowed in either way.
    static var allowedIf: [(name: String, conditions: [scmp_arg_cmp])] {
        let settings = [F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC].map { (name: "fcntl", conditions: [equal(1, $0)]) }
        return settings + [
            // To make a thread, not a process.
            ("clone", [mask(0, pw_clone_thread)]),
            // For abort(3).
            ("tgkill", [equal(0, getpid())]),
            // fstat(3) of older C libraries. The call accepts a path too: names and sizes of files are not secret here.
            ("newfstatat", [mask(3, pw_at_empty_path)]),
            // To name a thread.
            ("prctl", [equal(0, pw_pr_set_name)]),
            // To read a limit, and to raise that of CPU time before every image.
            ("prlimit64", [equal(0, 0), equal(2, 0)]),
            ("prlimit64", [equal(0, 0), equal(1, 0)]),  // RLIMIT_CPU
            ("prlimit64", [equal(0, 0), equal(1, 1)]),  // RLIMIT_FSIZE, which cannot be raised
        ]
    }

    /// Refused as an unknown system call, so that the C library uses the older one, whose arguments a filter can check.
    static let unknown = ["clone3", "statx", "rt_tgsigqueueinfo", "futex_waitv", "memfd_create"]

    /// Have no effect and report success: x265 would like its threads and memory near one processor, and prints a line
    /// for every refusal.
    static let ignored = ["sched_setaffinity", "set_mempolicy", "mbind"]

    private static func equal(_ argument: UInt32, _ value: Int32) -> scmp_arg_cmp {
        scmp_arg_cmp(arg: argument, op: SCMP_CMP_EQ, datum_a: UInt64(UInt32(bitPattern: value)), datum_b: 0)
    }

    /// All of these bits.
    private static func mask(_ argument: UInt32, _ bits: Int32) -> scmp_arg_cmp {
        let bits = UInt64(UInt32(bitPattern: bits))
        return scmp_arg_cmp(arg: argument, op: SCMP_CMP_MASKED_EQ, datum_a: bits, datum_b: bits)
    }
}
