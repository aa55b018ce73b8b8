import Glibc
import TestSupport
import Testing

/// The order that makes `done` durable, checked on a recording of the system calls: data before link, link before folder,
/// folder before commit.
@Suite("Order of syncs", .serialized, .timeLimit(.minutes(15)), .enabled(if: FaultScale.hasStrace, FaultScale.noStrace))
struct SyncOrderTests {
    @Test func `Every file is synced, linked, and its folder synced, before the database commits it`() async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            let trace = try await record(worker, [])
            #expect(trace.violations == [])
            #expect(trace.links == FaultBench.pictures * 4)
            try await bench.check(worker, "recorded")
        }
    }

    /// One of the first two calls of fsync or syncfs returns without a sync.
    @Test(arguments: [
        "fsync:retval=0:when=1", "fsync:retval=0:when=2", "syncfs:retval=0:when=1", "syncfs:retval=0:when=2",
    ])
    func `A missing sync violates the recorded order`(_ fault: String) async throws {
        try await FaultBench.lend { bench in
            let worker = try bench.worker()
            // More files than are synced one by one, which are in one group whatever comes beside them.
            let variants = (10..<22).flatMap { ["--variant", "v\($0)=\($0)x,png"] }
            try await worker.run(["enqueue", bench.origin.url("/77.png")] + variants)
            let trace = try await record(worker, ["-e", "inject=\(fault)"])
            #expect(trace.violations != [] || !trace.isInjected)
            let isCalled = try await isSyncedAsAWhole(worker) || !fault.hasPrefix("syncfs")
            #expect(trace.isInjected == isCalled)
        }
    }

    /// Whether the folder's file system is one of those whose sync speaks for its files.
    private func isSyncedAsAWhole(_ worker: TestWorker) async throws -> Bool {
        let kind = try await worker.run(["-f", "-c", "%T", worker.home], program: "stat").line
        return ["ext2/ext3", "xfs", "btrfs", "f2fs", "tmpfs"].contains(kind)
    }

    @Test func `A run without syncs violates the recorded order`() async throws {
        try await FaultBench.lend { bench in
            let trace = try await record(try bench.worker(), [], ["--unsafe-without-sync"])
            #expect(trace.violations.count >= FaultBench.pictures)
        }
    }

    private func record(_ worker: TestWorker, _ faults: [String], _ arguments: [String] = []) async throws -> SyncTrace
    {
        let file = worker.place("trace")
        try await worker.run(
            ["-f", "-qq", "-y", "-s", "9000", "-o", file, "-e", "trace=\(SyncTrace.calls)"] + faults
                + [TestWorker.binary, "run", "--drain", "--quiet"] + TestWorker.quick + arguments, program: "strace")
        return SyncTrace(try worker.text(of: file))
    }
}

/// What a recording says about the order.
struct SyncTrace {
    static let calls = "fsync,fdatasync,syncfs,fchmod,linkat,pwrite64"

    private(set) var violations: [String] = []
    private(set) var links = 0
    private(set) var isInjected = false
    /// Files that nothing is written to any more; a sync of the whole file system is theirs too.
    private var complete: Set<String> = []
    /// What was part of such a sync, until a folder is synced after it: only that makes the disk empty its own memory.
    private var awaiting: Set<String> = []
    private var awaitingNames: Set<String> = []
    private var syncedFiles: Set<String> = []
    /// Names whose folder was not synced since they were made.
    private var unsynced: [String: String] = [:]

    init(_ text: String) {
        for line in Self.whole(text) { take(line) }
    }

    /// A call that another thread has interrupted stands in two pieces. It counts where it ended; a commit, where it began.
    private static func whole(_ text: String) -> [Substring] {
        var begun: [Substring: Substring] = [:]
        var lines: [Substring] = []
        for line in text.split(separator: "\n") {
            let pid = line.prefix { $0 != " " }
            if line.hasSuffix("<unfinished ...>") {
                if line.contains(" pwrite64(") { lines.append(line) } else { begun[pid] = line.dropLast(16) }
            } else if let start = line.firstRange(of: " resumed>"), let first = begun.removeValue(forKey: pid) {
                lines.append(first + line[start.upperBound...])
            } else {
                lines.append(line)
            }
        }
        return lines
    }

    private mutating func take(_ line: Substring) {
        // What was injected was never done.
        isInjected = isInjected || line.contains("(INJECTED)")
        let isDone = line.contains(" = 0") && !line.contains("(INJECTED)")
        if line.contains(" fchmod("), isDone, let name = Self.descriptor(in: line) {
            complete.insert(name)
        } else if line.contains(" syncfs("), isDone {
            awaiting.formUnion(complete)
            awaitingNames.formUnion(unsynced.keys)
        } else if line.contains(" fsync("), isDone, let name = Self.descriptor(in: line) {
            sync(name)
        } else if line.contains(" linkat("), isDone, let hash = Self.hash(in: line) {
            links += 1
            // Unnamed files show as `/…/#inode (deleted)`: which one it was, its descriptor says.
            if !wasSynced(line) { violations.append("linked before it was synced: \(hash)") }
            unsynced[hash] = String(hash.prefix(2))
        } else if line.contains(" pwrite64("), line.contains("worker.db-wal") {
            for hash in unsynced.keys where line.contains(hash) {
                violations.append("written down before its folder was synced: \(hash)")
            }
        }
    }

    private mutating func sync(_ name: String) {
        syncedFiles.insert(name)
        if name.contains("/blobs/sha256>") {
            syncedFiles.formUnion(awaiting)
            awaiting = []
            for hash in awaitingNames { unsynced[hash] = nil }
            awaitingNames = []
        } else if name.contains("/blobs/sha256/"), !name.contains("#") {
            let folder = String(name.dropLast().suffix(2))
            for (hash, its) in unsynced where its == folder { unsynced[hash] = nil }
        }
    }

    /// Each name takes a sync of its own: the next file may get the same number.
    private mutating func wasSynced(_ line: Substring) -> Bool {
        guard let start = line.firstRange(of: "/proc/self/fd/") else { return false }
        let number = line[start.upperBound...].prefix { $0.isNumber }
        let synced = syncedFiles.filter { $0.hasPrefix("\(number)<") }
        syncedFiles.subtract(synced)
        complete.subtract(synced)
        return !synced.isEmpty
    }

    /// `12</path>` or `12</path>(deleted)`: the number and what it stands for.
    private static func descriptor(in line: Substring) -> String? {
        guard let open = line.firstIndex(of: "("), let close = line.firstRange(of: ") ") else { return nil }
        return String(line[line.index(after: open)..<close.lowerBound])
    }

    private static func hash(in line: Substring) -> String? {
        line.split(separator: "\"").last { $0.utf8.count > 64 && $0.contains("/blobs/sha256/") }.map {
            String($0.suffix(64))
        }
    }
}
