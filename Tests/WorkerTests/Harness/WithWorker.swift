import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Lends a worker's home and an origin, and checks afterwards that the invariants hold and that nothing is left over.
func withWorker(
    _ handler: @escaping @Sendable (LoopbackOrigin.Request) -> LoopbackReply = Pictures.reply,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (TestWorker) async throws -> Void,
) async throws {
    await Turnstile.shared.enter()
    defer { Turnstile.shared.leave() }
    try await withTemporaryDirectory { folder in
        let origin = try LoopbackOrigin(handler)
        let worker = try TestWorker(folder: folder, origin: origin)
        do {
            try await body(worker)
            try await worker.stopAll()
            try await worker.checkNothingIsLeft(sourceLocation)
        } catch {
            worker.killAll()
            throw error
        }
        origin.stop()
    }
}

/// As above, with an origin that answers each path's requests in turn.
func withWorker(
    script: [String: [LoopbackReply]], sourceLocation: SourceLocation = #_sourceLocation,
    _ body: (TestWorker) async throws -> Void,
) async throws {
    let turns = Turns(script)
    try await withWorker({ turns.next($0) }, sourceLocation: sourceLocation, body)
}

/// Lends the same with a PostgreSQL database.
func withPostgres(
    _ handler: @escaping @Sendable (LoopbackOrigin.Request) -> LoopbackReply = Pictures.reply,
    sourceLocation: SourceLocation = #_sourceLocation, _ body: (TestWorker) async throws -> Void,
) async throws {
    let url = try await PostgresServer.running.value.newSchema()
    try await withWorker(handler, sourceLocation: sourceLocation) { w in
        w.set(["WORKER_DB": url])
        try await body(w)
    }
}

extension TestWorker {
    fileprivate func checkNothingIsLeft(_ location: SourceLocation) async throws {
        try await checkProcesses(location)
        guard isOnPostgres || access(database, F_OK) == 0 else { return }
        checkFiles(location)
        // What a test has damaged is told until it is mended.
        try await sql("DELETE FROM lost_files")
        let verified = try await run("cache", "verify", expecting: nil)
        #expect(verified.exit == .code(0), "\(verified.output)\(verified.errors)", sourceLocation: location)
        if !isOnPostgres {
            #expect(try await value("PRAGMA integrity_check") == "ok", sourceLocation: location)
        }
    }

    private func checkProcesses(_ location: SourceLocation) async throws {
        for _ in 0..<100 where !processes.isEmpty { try await Task.sleep(for: .milliseconds(20)) }
        let left = processes
        if !left.isEmpty {
            Issue.record("Processes are left over: \(left)", sourceLocation: location)
            killAll()
        }
    }

    private func checkFiles(_ location: SourceLocation) {
        let database: Set = ["worker.db", "worker.db-wal", "worker.db-shm", "worker.db.lock", "cache"]
        #expect(Set(fileNames(in: home)).subtracting(database) == [], sourceLocation: location)
        let folders: Set = [
            "CACHE_BACKED_BY", "CACHE_ID", "CACHE_OWNER", "CACHE_VERSION", "blobs", "quarantine",
        ]
        #expect(Set(fileNames(in: cache)).subtracting(folders) == [], sourceLocation: location)
        let odd = blobs.filter { !$0.matchesBlob }
        #expect(odd == [], sourceLocation: location)
    }
}

extension String {
    /// `ab/ab…`, 64 hexadecimal digits.
    fileprivate var matchesBlob: Bool {
        let name = dropFirst(3)
        return name.utf8.count == 64 && name.hasPrefix(prefix(2))
            && name.allSatisfy { $0.isHexDigit && !$0.isUppercase }
    }
}

/// Lets three tests at a time start processes: most of a test is waiting, but a dozen at once wait for each other.
private final class Turnstile: Sendable {
    /// One for all suites, since it is the machine that they share.
    static let shared = Turnstile()

    private let state = Mutex((free: 3, waiting: [CheckedContinuation<Void, Never>]()))

    func enter() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.free > 0 {
                    state.free -= 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func leave() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.waiting.isEmpty {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}
