import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// The run that faults are put into: twenty URLs in three variants, as a database that waits to be copied.
final class FaultBench: Sendable {
    static let pictures = 20
    static let variants = ["small=24x18,png", "half=32x24,jpeg,q80", "web=40x30,webp,q80"]

    /// Everything an undisturbed run ends with: `number|variant|blob`.
    let outputs: [String]
    /// Half of the bytes that it leaves in the cache.
    let limit: Int64
    let origin: LoopbackOrigin
    private let template: String
    private let folder: FilePath
    private let lanes = Mutex(0)
    /// The home that those with a small cache are copied from.
    let limitedTemplate = Mutex("")

    /// Lends a bench, after an undisturbed run.
    static func lend(_ body: (FaultBench) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            let origin = try LoopbackOrigin(Pictures.reply)
            let urls = (0..<pictures).map { origin.url("/\($0).png") }
            let template = try TestWorker(folder: try Self.newFolder(folder, "template"), origin: origin)
            try await template.run("init")
            try await template.sql(
                """
                CREATE TABLE ends (item INTEGER);
                CREATE TRIGGER count_ends AFTER UPDATE OF state ON items WHEN NEW.state IN ('done', 'failed', 'cancelled')
                BEGIN INSERT INTO ends VALUES (NEW.id); END;
                CREATE TABLE claims (worker INTEGER, wait INTEGER);
                CREATE TRIGGER time_claims AFTER INSERT ON leases BEGIN
                    INSERT INTO claims SELECT id, NEW.claimed_at - started_at FROM workers WHERE id = NEW.worker; END
                """)
            try await template.run(["enqueue"] + urls + variants.flatMap { ["--variant", $0] })
            try await template.sql("PRAGMA wal_checkpoint(TRUNCATE)")
            let calm = try TestWorker(folder: try Self.newFolder(folder, "calm"), origin: origin)
            try copy(template.home, to: calm.home)
            try await calm.drain()
            let bench = FaultBench(
                outputs: try await calm.outputs(),
                limit: Int64(try await calm.value("SELECT bytes / 2 FROM cache_totals")) ?? 0, origin: origin,
                template: template.home, folder: folder)
            #expect(bench.outputs.count == pictures * 4)
            try await body(bench)
            origin.stop()
        }
    }

    private init(outputs: [String], limit: Int64, origin: LoopbackOrigin, template: String, folder: FilePath) {
        self.outputs = outputs
        self.limit = limit
        self.origin = origin
        self.template = template
        self.folder = folder
    }

    /// A worker's home with the run before it, in a folder of its own.
    func worker(_ flavour: Flavour = .plain, in home: FilePath? = nil) throws -> TestWorker {
        let number = lanes.withLock { lanes in
            lanes += 1
            return lanes
        }
        let worker = try TestWorker(folder: try Self.newFolder(home ?? folder, "\(number)"), origin: origin)
        let template = flavour == .plain ? template : limitedTemplate.withLock { $0 }
        try Self.copy(template, to: worker.home)
        return worker
    }

    func remove(_ worker: TestWorker) throws {
        _ = try ChildProcess.run("rm", ["-rf", "--", String(worker.home.dropLast("/home".count))])
    }

    private static func newFolder(_ parent: FilePath, _ name: String) throws -> FilePath {
        let path = parent.appending(name)
        guard mkdir(path.string, 0o700) == 0 else { throw Errno(rawValue: errno) }
        return path
    }

    private static func copy(_ home: String, to other: String) throws {
        guard try ChildProcess.run("cp", ["-r", "\(home)/.", other]) == 0 else { throw Errno.ioError }
    }

    /// Every invariant, and the same outputs as those of the undisturbed run, byte for byte.
    func check(_ worker: TestWorker, _ what: String, attempts: String = "1|1") async throws {
        let count = Self.pictures
        // In one go, since starting a program is what takes the time.
        let facts = try await worker.rows(
            """
            SELECT state, count(*) FROM items GROUP BY state;
            SELECT count(*), count(DISTINCT item) FROM ends;
            SELECT min(attempts), max(attempts) FROM items;
            SELECT blobs = (SELECT count(*) FROM blobs) AND bytes = (SELECT sum(size) FROM blobs) FROM cache_totals;
            PRAGMA integrity_check;
            """)
        #expect(facts == ["done|\(count)", "\(count)|\(count)", attempts, "1", "ok"], "\(what)")
        #expect(try await worker.outputs() == outputs, "\(what)")
        #expect(worker.processes == [], "\(what)")
        let folders: Set = ["CACHE_ID", "CACHE_OWNER", "CACHE_VERSION", "blobs", "quarantine"]
        #expect(Set(fileNames(in: worker.cache)) == folders, "\(what)")
        #expect(fileNames(in: worker.cache + "/quarantine") == [], "\(what)")
    }
}

extension TestWorker {
    /// What every result is, from the bytes on the disk: `path of the URL|variant|SHA-256`.
    ///
    /// - Parameter job: leaves out the others'.
    func outputs(of job: Int? = nil) async throws -> [String] {
        let rows = try await rows(
            """
            SELECT substr(url, instr(substr(url, 9), '/') + 8), variant, path FROM results WHERE state = 'done'
            \(job.map { "AND job = \($0)" } ?? "") ORDER BY item, variant
            """)
        let blobs = blobs
        let sums = try await run(
            blobs.map { "\(cache)/blobs/sha256/\($0)" }, program: "sha256sum", expecting: blobs.isEmpty ? nil : 0
        ).lines
        let whole = Set(sums.filter { $0.prefix(64) == $0.suffix(64) }.map { String($0.prefix(64)) })
        return rows.map { row in
            let parts = row.split(separator: "|", omittingEmptySubsequences: false)
            let blob = String(parts.last?.suffix(64) ?? "")
            return whole.contains(blob) ? "\(parts[0])|\(parts[1])|\(blob)" : "\(row) is not whole"
        }
    }

    /// `worker run --drain` under strace, which injects a fault.
    ///
    /// Errors are injected by means of seccomp, which is quicker; a signal would come at the first call only.
    func drain(
        injecting fault: String, into call: String, arguments: [String] = [], within limit: Duration = .seconds(60),
    ) async throws -> Finished {
        try await run(
            [
                "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e", "inject=\(call):\(fault)",
            ] + (fault.hasPrefix("signal") ? [] : ["--seccomp-bpf"])
                + [Self.binary, "run", "--drain", "--quiet"] + Self.quick + arguments, program: "strace",
            expecting: nil, within: limit)
    }
}

/// Numbers from the environment, so that `scripts/faults` can ask for more.
enum FaultScale {
    static func number(_ name: String, _ fallback: Int) -> Int {
        getenv(name).flatMap { Int(String(cString: $0)) } ?? fallback
    }

    static let hasStrace = ChildProcess.find("strace") != nil
    static let noStrace: Comment = "there is no strace here; scripts/bootstrap installs it"

    /// Runs `body` for every element, a few at a time.
    static func forEach<T: Sendable>(
        _ elements: [T], atOnce width: Int, _ body: @escaping @Sendable (T) async throws -> Void,
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, element) in elements.enumerated() {
                if index >= width { try await group.next() }
                group.addTask { try await body(element) }
            }
            try await group.waitForAll()
        }
    }
}
