import Glibc
import Synchronization
import TestSupport
import Testing

/// The run as it is, and in a cache that is too small for it and has links for a web server.
extension FaultBench {
    enum Flavour: Sendable {
        case plain
        /// Half of what comes of the run has room. Some of its links are there already and lead elsewhere.
        case limited
    }

    static let earlier = 6

    func arguments(_ flavour: Flavour) -> [String] {
        switch flavour {
        case .plain: []
        case .limited: ["--links", "tree", "--cache-max-size", "\(limit)B"]
        }
    }

    /// Makes the home that the others of a flavour are copied from.
    func prepare(_ flavour: Flavour) async throws {
        guard flavour == .limited else { return }
        let worker = try worker(.plain)
        try await worker.sql("UPDATE jobs SET state = 'paused'")
        let urls = (0..<Self.earlier).map { origin.url("/\($0).png") }
        // Under the same names as the others, so that their links are replaced.
        try await worker.run(
            ["enqueue"] + urls + ["--variant", "small=12x9,png", "--variant", "half=16x12,jpeg,q80"])
        try await worker.drain("--links", "tree")
        try await worker.sql(
            "UPDATE jobs SET state = 'queued' WHERE state = 'paused'; PRAGMA wal_checkpoint(TRUNCATE)")
        limitedTemplate.withLock { $0 = worker.home }
    }

    func check(_ worker: TestWorker, _ flavour: Flavour, _ what: String) async throws {
        let reservations = try await worker.value("SELECT count(*) FROM reservations")
        #expect(reservations == "0", "\(what): room stays set aside")
        guard flavour == .limited else { return try await check(worker, what) }
        let count = Self.pictures + Self.earlier
        let facts = try await worker.rows(
            """
            SELECT state, count(*) FROM items GROUP BY state;
            SELECT count(*), count(DISTINCT item) FROM ends;
            SELECT max(attempts) <= 1 FROM items;
            SELECT blobs = (SELECT count(*) FROM blobs) AND bytes = (SELECT ifnull(sum(size), 0) FROM blobs)
                AND bytes <= \(limit) FROM cache_totals;
            PRAGMA integrity_check;
            """)
        #expect(facts == ["done|\(count)", "\(count)|\(count)", "1", "1", "ok"], "\(what)")
        // What was evicted has no path any more; what has one is what it would be without a kill.
        let left = try await worker.outputs(of: 1).filter { !$0.hasSuffix("| is not whole") }
        #expect(Set(left).isSubset(of: Set(outputs)), "\(what)")
        #expect(worker.processes == [], "\(what)")
        let folders: Set = ["CACHE_VERSION", "CACHE_ID", "CACHE_OWNER", "blobs", "quarantine", "links"]
        #expect(Set(fileNames(in: worker.cache)) == folders, "\(what)")
        #expect(fileNames(in: worker.cache + "/quarantine") == [], "\(what)")
        // A link that the list still has is settled by the next program, also by one without work.
        if try await worker.value("SELECT count(*) FROM removed_links") != "0" {
            try await worker.drain("--links", "tree")
        }
        let verified = try await worker.run("cache", "verify", expecting: nil)
        #expect(verified.exit == .code(0) && verified.output.contains(" 0 orphans"), "\(what): \(verified.output)")
        #expect(!verified.output.contains(" corrected"), "\(what): \(verified.output)")
    }
}
