import Glibc
import Synchronization

/// PostgreSQL, started by `scripts/postgres-server`. It ends with the process that runs the tests.
public final class PostgresServer: Sendable {
    private let program: ScriptedServer
    private let number = Atomic(0)

    public static let missing = "There is no PostgreSQL; scripts/bootstrap installs it."

    public static let isAvailable: Bool = {
        let found = try? ChildProcess.run("sh", ["-c", "ls /usr/lib/postgresql/*/bin/postgres"])
        return found == 0 && access("/usr/bin/psql", X_OK) == 0
    }()

    /// One for all tests.
    public static let running = Task { try await PostgresServer() }

    private init() async throws { program = try await ScriptedServer("postgres-server") }

    public var port: UInt16 { UInt16(program["url"].split(separator: ":").last?.prefix { $0 != "/" } ?? "") ?? 0 }

    /// The URL of an empty schema of its own, which no other test uses.
    public func newSchema() throws -> String {
        let name = "test_\(getpid())_\(number.wrappingAdd(1, ordering: .relaxed).newValue)"
        let url = program["url"]
        _ = try ChildProcess.run("psql", ["-qX", "-d", url, "-c", "CREATE SCHEMA \(name)"])
        return "\(url)?options=-csearch_path%3D\(name)"
    }
}

/// A PostgreSQL server with a synchronous standby, for one test. Both end with `stop` or this process.
public final class PostgresPair: Sendable {
    private let program: ScriptedServer

    public init() async throws { program = try await ScriptedServer("postgres-server", ["--standby"]) }

    /// Names both servers, and takes the one that accepts writes.
    public var url: String { program["url"] }

    public func killPrimary() throws {
        guard let primary = pid_t(program["primary"]), kill(primary, SIGKILL) == 0 else {
            throw ScriptedServer.Failure(description: "There is no server to kill.")
        }
    }

    /// Makes the standby accept writes.
    public func promote() throws {
        let status = try ChildProcess.run("psql", ["-qXAt", "-d", program["standby"], "-c", "SELECT pg_promote()"])
        guard status == 0 else { throw ScriptedServer.Failure(description: "The standby can't be promoted.") }
    }

    public func stop() { program.stop() }
}
