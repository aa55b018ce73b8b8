import Glibc
import SystemPackage
import TestSupport
import Testing

extension TestWorker {
    // MARK: - The database, by the real sqlite3 or psql

    @discardableResult
    func sql(
        _ statement: String, expecting code: Int32? = 0, sourceLocation: SourceLocation = #_sourceLocation,
    ) async throws -> Finished {
        let command =
            isOnPostgres
            ? ["-qXAt", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", statement]
            : ["-batch", "-cmd", ".timeout 20000", database, statement]
        return try await run(
            command, program: isOnPostgres ? "psql" : "sqlite3", expecting: code, sourceLocation: sourceLocation)
    }

    /// Stops a process between two of its transactions: one that is stopped within a write holds the database for as
    /// long as it stands still, and no other can work.
    func freeze(_ process: pid_t) async throws {
        try await eventually("it stands still between two writes") {
            kill(process, SIGSTOP)
            let write = ["sqlite3", "-batch", "-cmd", ".timeout 500", database, "BEGIN IMMEDIATE; ROLLBACK"]
            // The signal takes effect a moment after the call.
            while !ProcessTable.isStopped(process) { try await Task.sleep(for: .milliseconds(1)) }
            let probe = try await run(["--nonblock", database + ".lock"] + write, program: "flock", expecting: nil)
            if probe.exit == .code(0) { return true }
            kill(process, SIGCONT)
            return false
        }
    }

    /// A line for each row, columns separated by `|`.
    func rows(_ query: String) async throws -> [String] { try await sql(query).lines }

    func value(_ query: String) async throws -> String { try await sql(query).line }

    /// Enqueues by the command, and gives the job's number.
    @discardableResult
    func enqueue(_ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation) async throws -> String {
        try await run(["enqueue"] + arguments, sourceLocation: sourceLocation).line
    }

    @discardableResult
    func enqueue(
        _ urls: [String], _ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation,
    ) async throws -> String {
        try await run(["enqueue"] + urls + arguments, sourceLocation: sourceLocation).line
    }

    /// `done|cached|failed|blacklisted|cancelled` of a job.
    func counts(_ job: String) async throws -> String {
        try await value("SELECT done, cached, failed, blacklisted, cancelled FROM jobs WHERE id = \(job)")
    }

    func state(_ job: String) async throws -> String { try await value("SELECT state FROM jobs WHERE id = \(job)") }

    /// `worker get`'s path.
    func path(_ url: String, variant: String? = nil) async throws -> String {
        try await run(["get", url] + (variant.map { ["--variant", $0] } ?? [])).line
    }

    // MARK: - Waiting

    struct NeverHappened: Error, CustomStringConvertible {
        let description: String
    }

    func eventually(
        _ what: String, within limit: Duration = .seconds(20), _ condition: () async throws -> Bool,
    ) async throws {
        let clock = ContinuousClock()
        let deadline = clock.now + limit
        while try await !condition() {
            guard clock.now < deadline else {
                throw NeverHappened(description: "It was never so within \(limit): \(what)")
            }
            try await clock.sleep(for: .milliseconds(40))
        }
    }

    func untilEnded(_ job: String, within limit: Duration = .seconds(30)) async throws {
        try await eventually("job \(job) has ended", within: limit) {
            try await value("SELECT finished_at IS NOT NULL FROM jobs WHERE id = \(job)") == "1"
        }
    }

    // MARK: - Files

    func write(_ bytes: [UInt8], to path: String) throws {
        let file = try FileDescriptor.open(
            FilePath(path), .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: [.ownerReadWrite])
        try file.closeAfter { _ = try file.writeAll(bytes) }
    }

    /// A sqlite3 shell that has run statements and keeps the database open for a minute, with its transaction and locks.
    func shell(holding sql: String) async throws -> RunningProgram {
        let held = place("held")
        let shell = try RunningProgram(
            "/usr/bin/sqlite3", ["-batch", database],
            files: .init(
                input: try file("in.sql", "\(sql);\n.shell touch \(held)\n.shell sleep 60\n"),
                output: place("shell.out"), errors: place("shell.err")),
            environment: ["PATH": "/usr/bin:/bin"])
        try await eventually("the shell holds the database") { access(held, F_OK) == 0 }
        return shell
    }

    /// Writes a file of the test's own, and gives its path.
    func file(_ name: String, _ text: String) throws -> String {
        let path = place(name)
        // Its folder may be there already.
        if name.contains("/") { mkdir(String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]), 0o755) }
        try write(Array(text.utf8), to: path)
        return path
    }

    func bytes(of path: String) throws -> [UInt8] {
        let file = try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
        return try file.closeAfter {
            let count = Int(try file.seek(offset: 0, from: .end))
            return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                filled = try file.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }

    func text(of path: String) throws -> String { String(decoding: try bytes(of: path), as: UTF8.self) }

    /// Every blob's path, relative to the cache.
    var blobs: [String] {
        let root = "\(cache)/blobs/sha256"
        return fileNames(in: root).flatMap { folder in fileNames(in: "\(root)/\(folder)").map { "\(folder)/\($0)" } }
    }

    /// Changes one byte of a file that is not meant to be changed.
    func flipByte(of path: String) throws {
        guard chmod(path, 0o600) == 0 else { throw Errno(rawValue: errno) }
        var bytes = try bytes(of: path)
        bytes[bytes.count / 2] ^= 1
        try write(bytes, to: path)
        chmod(path, 0o444)
    }
}
