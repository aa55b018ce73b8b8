public import Glibc
import Synchronization

/// A program that a test has started and can signal and wait for.
public final class RunningProgram: Sendable {
    public let pid: pid_t
    private let end = Mutex<Exit?>(nil)

    /// How a program ended.
    public enum Exit: Hashable, Sendable {
        case code(Int32)
        case signal(Int32)
    }

    public struct TookTooLong: Error, CustomStringConvertible {
        public let description: String
    }

    /// - Parameter environment: the whole of it.
    public init(
        _ program: String, _ arguments: [String], files: ChildProcess.Files, environment: [String: String],
    ) throws {
        pid = try ChildProcess.start(program, arguments, files: files, environment: environment)
    }

    /// `nil` while it runs.
    public var exit: Exit? {
        end.withLock { end in
            if let end { return end }
            var status: Int32 = 0
            // Waiting is what tells a process of ours from a later one with the same number.
            guard waitpid(pid, &status, WNOHANG) == pid else { return nil }
            end = status & 0x7F == 0 ? .code((status >> 8) & 0xFF) : .signal(status & 0x7F)
            return end
        }
    }

    /// Does nothing once it has ended.
    public func send(_ signal: Int32) {
        if exit == nil { kill(pid, signal) }
    }

    /// Waits for its end, and kills it when that takes too long.
    @discardableResult
    public func wait(atMost limit: Duration = .seconds(30)) async throws -> Exit {
        let clock = ContinuousClock()
        let deadline = clock.now + limit
        while true {
            if let exit { return exit }
            guard clock.now < deadline else {
                let words = ProcessTable.words(of: pid).joined(separator: " ").prefix(500)
                let waits = ProcessTable.waits(of: pid)
                send(SIGKILL)
                throw TookTooLong(
                    description:
                        "Process \(pid) was still running after \(limit): \(words); its threads wait in \(waits)")
            }
            try await clock.sleep(for: .milliseconds(4))
        }
    }

    /// The most memory it has had at once, in MiB; `nil` when it has ended.
    public var peakMemory: Int? { ProcessTable.peakMemory(of: pid) }
}

/// What /proc tells of processes.
public enum ProcessTable {
    /// The living processes of these names whose environment has this variable with this value.
    public static func processes(named names: Set<String>, with variable: String, _ value: String) -> [pid_t] {
        let entry = Array("\(variable)=\(value)".utf8)
        return all().filter { pid in
            let name = text("/proc/\(pid)/comm").prefix { $0 != "\n" }
            return names.contains(String(name)) && bytes("/proc/\(pid)/environ").firstRange(of: entry) != nil
        }
    }

    /// The children of a process that are alive.
    public static func children(of parent: pid_t) -> [pid_t] {
        all().filter { pid in
            // "123 (name) S 1 …": the name may have spaces and brackets in it.
            guard let rest = text("/proc/\(pid)/stat").split(separator: ")").last else { return false }
            let fields = rest.split(separator: " ")
            return fields.count > 1 && fields[0] != "Z" && pid_t(fields[1]) == parent
        }
    }

    /// The words of its command line; none when it has ended.
    public static func words(of pid: pid_t) -> [String] {
        text("/proc/\(pid)/cmdline").split(separator: "\0").map(String.init)
    }

    /// The kernel's functions in which its threads wait, with "0" for one that runs: what a process hangs in.
    static func waits(of pid: pid_t) -> [String] {
        fileNames(in: "/proc/\(pid)/task").map { text("/proc/\(pid)/task/\($0)/wchan") }
    }

    /// Whether a process stands still after SIGSTOP, or has ended.
    public static func isStopped(_ pid: pid_t) -> Bool {
        guard let rest = text("/proc/\(pid)/stat").split(separator: ")").last else { return true }
        return ["T", "Z"].contains(rest.split(separator: " ").first)
    }

    /// The most memory it has had at once, in MiB; `nil` when it has ended.
    public static func peakMemory(of pid: pid_t) -> Int? {
        let fields = text("/proc/\(pid)/status").split(separator: "\n")
        let line = fields.first { $0.hasPrefix("VmHWM:") }
        return line.flatMap { Int($0.filter(\.isNumber)) }.map { $0 / 1024 }
    }

    /// Milliseconds of CPU that it has used; `nil` when it has ended.
    public static func processorTime(of pid: pid_t) -> Int? {
        // Counted in ticks, behind the name: the twelfth and thirteenth field after it (proc(5)).
        guard let rest = text("/proc/\(pid)/stat").split(separator: ")").last else { return nil }
        let fields = rest.split(separator: " ")
        guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else { return nil }
        return (user + system) * 1_000 / max(1, sysconf(Int32(_SC_CLK_TCK)))
    }

    /// A file's bytes; `nil` when there is nothing to be read.
    public static func contents(of path: String) -> [UInt8]? {
        let found = bytes(path)
        return found.isEmpty ? nil : found
    }

    private static func all() -> [pid_t] { fileNames(in: "/proc").compactMap { pid_t($0) } }

    static func text(_ path: String) -> String { String(decoding: bytes(path), as: UTF8.self) }

    /// Empty when it can't be read: the process has ended.
    private static func bytes(_ path: String) -> [UInt8] {
        guard let file = fopen(path, "re") else { return [] }
        defer { fclose(file) }
        var result: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { result += buffer[..<count] }
        return result
    }
}

/// What a folder holds, without `.` and `..`; nothing when it can't be read.
public func fileNames(in folder: String) -> [String] {
    guard let stream = opendir(folder) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
}
