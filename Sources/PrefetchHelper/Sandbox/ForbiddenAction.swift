internal import CDescriptorPassing
internal import CLandlock
internal import CSeccomp
internal import Glibc
internal import HelperProtocol

/// A forbidden action that a helper can try on itself without harm.
struct ForbiddenAction: Sendable {
    let name: String
    /// The protection that has to refuse it.
    let layer: SandboxReport.Layer
    /// The first version of Landlock that refuses it.
    var since = 1
    private let attempt: @Sendable () -> Int

    /// - Returns: the error with which it was refused; nil if it was done, or failed for another reason.
    func refusal() -> Int32? {
        errno = 0
        guard attempt() < 0, [EPERM, EACCES, ENOSYS].contains(errno) else { return nil }
        return errno
    }
}

extension ForbiddenAction {
    static let all = ofLandlock + ofSeccomp + byName

    /// Tried before system calls are filtered.
    private static let ofLandlock = [
        ForbiddenAction(name: "read a file", layer: .landlock) { opening("/etc/passwd", O_RDONLY) },
        ForbiddenAction(name: "list a folder", layer: .landlock) { opening("/", O_RDONLY | O_DIRECTORY) },
        ForbiddenAction(name: "create a file", layer: .landlock) { opening("/tmp/worker-sandbox", O_CREAT | O_WRONLY) },
        ForbiddenAction(name: "create an unnamed file", layer: .landlock) {
            opening("/tmp", O_RDWR | 0o20000000 | O_DIRECTORY)  // O_TMPFILE
        },
        ForbiddenAction(name: "create a folder", layer: .landlock) { Int(mkdir("/tmp/worker-sandbox", 0o700)) },
        ForbiddenAction(name: "run a program", layer: .landlock) { running("/bin/true") },
        ForbiddenAction(name: "connect", layer: .landlock, since: 4) { connecting() },
        ForbiddenAction(name: "signal its worker", layer: .landlock, since: 6) { Int(kill(getppid(), 0)) },
    ]

    private static let ofSeccomp: [ForbiddenAction] = [
        ForbiddenAction(name: "open a file", layer: .seccomp) { opening("/etc/passwd", O_RDONLY) },
        ForbiddenAction(name: "create a file", layer: .seccomp) { opening("/tmp/worker-sandbox", O_CREAT | O_WRONLY) },
        ForbiddenAction(name: "make a socket", layer: .seccomp) { Int(socket(AF_INET, stream, 0)) },
        ForbiddenAction(name: "make a socket of this machine", layer: .seccomp) { Int(socket(AF_UNIX, stream, 0)) },
        ForbiddenAction(name: "run a program", layer: .seccomp) { running("/bin/true") },
        ForbiddenAction(name: "fork", layer: .seccomp) { call("clone", Int(SIGCHLD)) },
        ForbiddenAction(name: "signal its worker", layer: .seccomp) { Int(kill(getppid(), 0)) },
        ForbiddenAction(name: "signal its worker's thread", layer: .seccomp) {
            call("tgkill", Int(getppid()), Int(getppid()))
        },
        ForbiddenAction(name: "lift its memory limit", layer: .seccomp) {
            var limit = rlimit(rlim_cur: rlim_t.max, rlim_max: rlim_t.max)
            return Int(setrlimit(__rlimit_resource_t(2), &limit))  // RLIMIT_DATA
        },
    ]

    /// Calls that the filter refuses with any arguments; these are harmless.
    private static let byName: [ForbiddenAction] = calls.filter { seccomp_syscall_resolve_name($0) >= 0 }.map { name in
        ForbiddenAction(name: name, layer: .seccomp) { call(name, -1, -1, -1, -1) }
    }

    private static let calls = [
        "openat2", "creat", "connect", "bind", "listen", "accept4", "socketpair", "execveat", "fork", "vfork",
        "clone3", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd", "mount", "unshare",
        "setns", "chroot", "io_uring_setup", "bpf", "perf_event_open", "keyctl", "userfaultfd", "memfd_create",
        "unlink", "rename", "mkdir", "symlink", "link", "chmod", "truncate", "readlink", "getdents64", "ioctl",
        "shmget", "setuid", "capset", "init_module", "kexec_load", "open_by_handle_at", "name_to_handle_at",
    ]

    private static let stream = Int32(SOCK_STREAM.rawValue)

    private static func call(_ name: String, _ a: Int = 0, _ b: Int = 0, _ c: Int = 0, _ d: Int = 0) -> Int {
        pw_try(Int(seccomp_syscall_resolve_name(name)), a, b, c, d)
    }

    private static func opening(_ path: String, _ flags: Int32) -> Int {
        let file = open(path, flags, 0o600)
        if file >= 0 { close(file) }
        return Int(file)
    }

    /// Passes no arguments: a program that is started in spite of the sandbox only reports that they are missing.
    private static func running(_ path: String) -> Int {
        path.withCString { call("execve", Int(bitPattern: UnsafeRawPointer($0))) }
    }

    /// Port 1 of this machine, where no program listens.
    private static func connecting() -> Int {
        let number = socket(AF_INET, stream, 0)
        guard number >= 0 else { return 0 }
        defer { close(number) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(1).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Int(connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)))
            }
        }
    }
}
