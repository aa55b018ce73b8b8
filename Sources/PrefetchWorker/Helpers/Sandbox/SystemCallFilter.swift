internal import CSeccomp
internal import Glibc
internal import SystemPackage

/// Leaves the process a short list of system calls, in all its threads. For good.
///
/// What is not on the list fails with `EPERM` and does nothing: a library that asks for more than it needs falls back
/// rather than dies. https://man7.org/linux/man-pages/man3/seccomp_init.3.html
enum SystemCallFilter {
    static func load() throws(Errno) {
        guard let filter = seccomp_init(pw_seccomp_refuse(EPERM)) else { throw .noMemory }
        defer { seccomp_release(filter) }
        try check(seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1))
        try check(seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, pw_seccomp_kill()))
        for name in allowed { try add(pw_seccomp_allow(), name, to: filter) }
        for (name, conditions) in allowedIf { try add(pw_seccomp_allow(), name, conditions, to: filter) }
        for name in unknown { try add(pw_seccomp_refuse(ENOSYS), name, to: filter) }
        try check(seccomp_load(filter))
    }

    private static func add(
        _ action: UInt32, _ name: String, _ conditions: [scmp_arg_cmp] = [], to filter: scmp_filter_ctx,
    ) throws(Errno) {
        let number = seccomp_syscall_resolve_name(name)
        // A call this version of libseccomp hasn't heard of stays refused.
        guard number != -1 else { return }
        try check(seccomp_rule_add_array(filter, action, number, UInt32(conditions.count), conditions))
    }

    /// libseccomp returns the negative error.
    private static func check(_ code: Int32) throws(Errno) {
        guard code == 0 else { throw Errno(rawValue: -code) }
    }
}
