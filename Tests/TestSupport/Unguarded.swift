import Glibc

/// A machine whose kernel lacks guards: a program is started under a filter that answers some calls with `ENOSYS`.
///
/// Python and libseccomp do it, since a filter has to be there before the program is.
public enum Unguarded {
    public static let isPossible = ChildProcess.find("python3") != nil

    /// The command that runs `program`, which must be a path, without the calls.
    public static func command(_ program: String, without calls: [String]) -> (program: String, arguments: [String]) {
        let path = ChildProcess.find("python3") ?? "python3"
        return (path, ["-c", script, calls.joined(separator: " "), program])
    }

    private static let script = """
        import ctypes, errno, os, sys
        library = ctypes.CDLL("libseccomp.so.2")
        library.seccomp_init.restype = ctypes.c_void_p
        rules = ctypes.c_void_p(library.seccomp_init(0x7fff0000))
        for name in sys.argv[1].split():
            number = library.seccomp_syscall_resolve_name(name.encode())
            assert library.seccomp_rule_add(rules, 0x00050000 | errno.ENOSYS, number, 0) == 0
        assert library.seccomp_load(rules) == 0
        os.execv(sys.argv[2], sys.argv[2:])
        """
}
