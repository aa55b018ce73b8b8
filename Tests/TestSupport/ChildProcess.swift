import Glibc
import SystemPackage

/// Programs that tests start.
public enum ChildProcess {
    /// Where a program reads and writes; `/dev/null` unless told otherwise.
    public struct Files: Sendable {
        public var input: String
        public var output: String
        public var errors: String

        public init(input: String = "/dev/null", output: String = "/dev/null", errors: String = "/dev/null") {
            self.input = input
            self.output = output
            self.errors = errors
        }
    }

    /// A program's path; a name with a slash in it is one already.
    public static func find(_ name: String) -> String? {
        if name.contains("/") { return access(name, X_OK) == 0 ? name : nil }
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        return "\(path):/usr/sbin".split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }

    /// - Parameter environment: the whole of it; `nil` for ours.
    static func start(
        _ name: String, _ arguments: [String], files: Files = Files(), environment: [String: String]? = nil,
    ) throws -> pid_t {
        guard let program = find(name) else { throw Errno.noSuchFileOrDirectory }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, files.input, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, files.output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, files.errors, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        resetSignals(&attributes)
        var words = ([program] + arguments).map { strdup($0) } + [nil]
        var variables = environment.map { $0.map { strdup("\($0.key)=\($0.value)") } + [nil] } ?? []
        defer { for word in words + variables { free(word) } }
        var process = pid_t()
        let code =
            environment == nil
            ? posix_spawn(&process, program, &actions, &attributes, &words, environ)
            : posix_spawn(&process, program, &actions, &attributes, &words, &variables)
        guard code == 0 else { throw Errno(rawValue: code) }
        return process
    }

    /// A thread of Swift's pool blocks most signals, a background job ignores some, and a child inherits both: it could
    /// not be told to end.
    private static func resetSignals(_ attributes: inout posix_spawnattr_t) {
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var usual = sigset_t()
        sigemptyset(&usual)
        for signal in [SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGQUIT] { sigaddset(&usual, signal) }
        posix_spawnattr_setsigdefault(&attributes, &usual)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    }

    /// Its exit status, or −1 when a signal ended it.
    public static func run(_ name: String, _ arguments: [String], files: Files = Files()) throws -> Int32 {
        var status: Int32 = 0
        waitpid(try start(name, arguments, files: files), &status, 0)
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : -1
    }
}
