/// A program that variants may name as `command:NAME`. Only the worker's configuration has its path; jobs cannot name a
/// path.
public struct TransformCommand: Hashable, Sendable {
    /// 1 to 64 ASCII letters, digits, `.`, `_` and `-`.
    public var name: String
    public var path: String
    /// Part of the identity of its renditions. Nil means the hash of the program's file, computed when the worker
    /// starts.
    public var version: String?

    public init(name: String, path: String, version: String? = nil) {
        self.name = name
        self.path = path
        self.version = version
    }

    /// - Parameter text: `NAME=PATH` or `NAME=PATH@VERSION`. A version has no `/` in it, so a path may have an `@`.
    /// - Throws: `usage`.
    public init(parsing text: String) throws(WorkerError) {
        let halves = text.split(separator: "=", maxSplits: 1).map(String.init)
        guard halves.count == 2, Self.isName(halves[0]) else {
            throw WorkerError(
                .usage,
                "transform-command must be NAME=PATH or NAME=PATH@VERSION, with a name of letters, digits, '.', '_' and "
                    + "'-', not '\(text)'.")
        }
        let at = halves[1].lastIndex(of: "@")
        if let at, case let version = halves[1][halves[1].index(after: at)...], !version.isEmpty, !version.contains("/")
        {
            self.init(name: halves[0], path: String(halves[1][..<at]), version: String(version))
        } else {
            self.init(name: halves[0], path: halves[1])
        }
    }

    private static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-".utf8.contains(byte)
            }
    }
}

/// Limits of one run of a command: its time and its output.
public struct CommandLimits: Hashable, Sendable {
    public var time = Duration.seconds(30)
    /// Maximum bytes of its output, which is held in memory.
    public var bytes = 64 << 20

    public init() {}
}
