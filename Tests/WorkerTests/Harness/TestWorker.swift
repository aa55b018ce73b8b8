import FoundationEssentials
import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// A folder with a database and a cache, an origin, and the program that was built, to use them with.
final class TestWorker: Sendable {
    /// Holds the database and the cache, and nothing of the tests' own.
    let home: String
    /// Files of the tests' own.
    let scratch: String
    let origin: LoopbackOrigin
    private let state = Mutex(
        (runs: 0, started: [RunningProgram](), errors: [pid_t: String](), variables: [String: String]()))

    static let marker = "PREFETCH_TEST"

    /// The program beside the tests, or what `WORKER_BINARY` says.
    static let binary: String = {
        if let named = getenv("WORKER_BINARY") { return String(cString: named) }
        var buffer = [CChar](repeating: 0, count: 4096)
        let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
        let tests = FilePath(
            String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self))
        let beside = tests.removingLastComponent().appending("worker").string
        return access(beside, X_OK) == 0 ? beside : ".build/tests/release/worker"
    }()

    /// Short enough that a test doesn't wait, long enough that a busy machine doesn't fail it.
    static let quick = [
        "--allow-addresses", "loopback", "--retry-delay", "20ms", "--connect-timeout", "2s", "--silence-timeout", "5s",
        "--total-timeout", "20s", "--min-free", "0",
    ]

    init(folder: FilePath, origin: LoopbackOrigin) throws {
        home = folder.appending("home").string
        scratch = folder.appending("scratch").string
        self.origin = origin
        guard mkdir(home, 0o700) == 0, mkdir(scratch, 0o700) == 0 else { throw Errno(rawValue: errno) }
    }

    /// A path, or the URL of a PostgreSQL database.
    var database: String { state.withLock { $0.variables["WORKER_DB"] } ?? home + "/worker.db" }
    var isOnPostgres: Bool { database.hasPrefix("postgres://") }
    var cache: String { home + "/cache" }

    func url(_ path: String) -> String { origin.url(path) }

    /// A path for a file of the test's own.
    func place(_ name: String) -> String { "\(scratch)/\(name)" }

    // MARK: - Running it

    struct Finished: Sendable {
        let exit: RunningProgram.Exit
        let output: String
        let errors: String

        var lines: [String] { output.split(separator: "\n").map(String.init) }
        var line: String { output.trimmingSuffix("\n") }

        func json<T: Decodable>(_: T.Type) throws -> T { try Self.decode(output) }

        /// One value on each line.
        func jsonLines<T: Decodable>(_: T.Type) throws -> [T] { try lines.map { try Self.decode($0) } }

        private static func decode<T: Decodable>(_ text: String) throws -> T {
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            return try decoder.decode(T.self, from: Data(text.utf8))
        }
    }

    /// Runs a program to its end: `worker` unless another is named.
    @discardableResult
    func run(
        _ arguments: String..., program: String = binary, input: String? = nil, environment: [String: String] = [:],
        expecting code: Int32? = 0, within limit: Duration = .seconds(60),
        sourceLocation: SourceLocation = #_sourceLocation,
    ) async throws -> Finished {
        try await run(
            arguments, program: program, input: input, environment: environment, expecting: code, within: limit,
            sourceLocation: sourceLocation)
    }

    @discardableResult
    func run(
        _ arguments: [String], program: String = binary, input: String? = nil, environment: [String: String] = [:],
        expecting code: Int32? = 0, within limit: Duration = .seconds(60),
        sourceLocation: SourceLocation = #_sourceLocation,
    ) async throws -> Finished {
        let (child, files) = try launch(program, arguments, input: input, environment: environment)
        let exit = try await child.wait(atMost: limit)
        let finished = Finished(exit: exit, output: try text(of: files.output), errors: try text(of: files.errors))
        if let code {
            let command = arguments.prefix(8).joined(separator: " ").prefix(300)
            #expect(exit == .code(code), "\(command)\n\(finished.errors)", sourceLocation: sourceLocation)
        }
        return finished
    }

    /// Works until nothing is left, with short limits.
    @discardableResult
    func drain(
        _ arguments: String..., expecting code: Int32? = 0, within limit: Duration = .seconds(60),
        sourceLocation: SourceLocation = #_sourceLocation,
    ) async throws -> Finished {
        try await run(
            ["run", "--drain"] + Self.quick + arguments, expecting: code, within: limit, sourceLocation: sourceLocation)
    }

    /// Starts `worker run` with short limits; it is stopped at the end of the test if it wasn't before.
    func start(_ arguments: String...) throws -> RunningProgram { try start(Self.quick + arguments) }

    /// The same with no limits but those named.
    func start(
        _ arguments: [String], command: String = "run", environment: [String: String] = [:],
    ) throws -> RunningProgram {
        let (child, files) = try launch(
            Self.binary, [command] + arguments, input: nil, environment: environment)
        state.withLock {
            $0.started.append(child)
            $0.errors[child.pid] = files.errors
        }
        return child
    }

    /// What a worker that was started has said so far.
    func errors(of child: RunningProgram) throws -> String {
        try text(of: state.withLock { $0.errors[child.pid] } ?? "/dev/null")
    }

    /// Starts `worker run` and waits until it is on the books.
    func startRegistered(_ arguments: String...) async throws -> RunningProgram {
        let child = try start(Self.quick + arguments)
        try await eventually("a worker is registered") {
            // There may be no database yet.
            if try await sql("SELECT count(*) FROM workers WHERE pid = \(child.pid)", expecting: nil).line == "1" {
                return true
            }
            guard child.exit == nil else {
                throw NeverHappened(description: "The worker ended at once: \(try errors(of: child))")
            }
            return false
        }
        return child
    }

    private func launch(
        _ program: String, _ arguments: [String], input: String?, environment: [String: String],
    ) throws -> (RunningProgram, ChildProcess.Files) {
        let number = state.withLock { state in
            state.runs += 1
            return state.runs
        }
        var files = ChildProcess.Files(
            output: place("\(number).out"), errors: place("\(number).err"))
        if let input {
            files.input = place("\(number).in")
            try write(Array(input.utf8), to: files.input)
        }
        let child = try RunningProgram(
            program, arguments, files: files, environment: self.environment.merging(environment) { $1 })
        return (child, files)
    }

    /// Ours without what would tell a worker something, and with the mark that processes of this test are found by.
    private var environment: [String: String] {
        var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("WORKER_") }
        variables["WORKER_DB"] = home + "/worker.db"
        variables["WORKER_CACHE"] = cache
        variables[Self.marker] = home
        return variables.merging(state.withLock { $0.variables }) { $1 }
    }

    /// Further variables for every program that is run from now on.
    func set(_ variables: [String: String]) { state.withLock { $0.variables.merge(variables) { $1 } } }

    /// Workers and their helpers, as far as they live.
    var processes: [pid_t] { ProcessTable.processes(named: ["worker", "worker-helper"], with: Self.marker, home) }

    /// Asks all that was started to stop.
    func stopAll() async throws {
        let running = state.withLock { $0.started }.filter { $0.exit == nil }
        for child in running { child.send(SIGTERM) }
        for child in running {
            let exit = try await child.wait()
            #expect(exit == .code(0))
        }
    }

    func killAll() {
        for pid in processes { kill(pid, SIGKILL) }
        for child in state.withLock({ $0.started }) { child.send(SIGKILL) }
    }
}

extension String {
    fileprivate func trimmingSuffix(_ suffix: String) -> String {
        hasSuffix(suffix) ? String(dropLast(suffix.count)) : self
    }
}
