import TestSupport
import Testing

/// Numbers out of range in the cache's tables, as any program may write them, trap no command and no worker.
@Suite(.serialized, .timeLimit(.minutes(15))) struct HugeNumberTests {
    private static let most = "9223372036854775807"

    @Test(arguments: [
        "UPDATE cache_totals SET bytes = \(most), blobs = \(most)", "UPDATE cache_totals SET bytes = -\(most)",
        "UPDATE cache_totals SET bytes = 'many', evicted_bytes = \(most), deduped_bytes = 1e300",
        "UPDATE cache_totals SET from_memory = -\(most) - 1, from_loaders = -\(most) - 1, from_files = \(most)",
        "UPDATE cache_totals SET hits = -\(most) - 1, misses = -\(most) - 1, from_memory = \(most), from_files = \(most)",
        ".dbconfig enable_trigger off\nINSERT INTO reservations VALUES (77, \(most)), (78, \(most))",
        "UPDATE sources SET size = \(most), fetched_at = -\(most)",
        "UPDATE blobs SET used_at = \(most), modified_at = -\(most), lifetime = \(most)",
        "UPDATE blobs SET size = 4611686018427387904", "UPDATE variants SET size = \(most), width = \(most)",
    ])
    func hugeNumbersTrapNoCommandAndNoWorker(statement: String) async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png")], "--variant", "v=16x12,png")
            try await w.drain()
            try await w.sql(statement)
            try await w.enqueue([w.url("/1.png"), w.url("/3.png")], "--variant", "u=8x6,png")
            let work = try await w.run(
                ["run", "--drain", "--cache-max-size", "1MB"] + TestWorker.quick, expecting: nil)
            #expect([.code(0), .code(2), .code(75)].contains(work.exit), "\(work.errors)")
            for command in [
                "cache stats", "cache stats --json", "cache gc --cache-max-size 1MB", "cache verify", "status",
                "metrics",
                "results 2", "doctor",
            ] {
                let found = try await w.run(command.split(separator: " ").map(String.init), expecting: nil)
                guard case .code(let code) = found.exit else {
                    Issue.record("\(command): \(found.exit)")
                    continue
                }
                // 74: a verification has found that the numbers are wrong.
                #expect([0, 1, 2, 70, 74, 75].contains(code), "\(command): \(code) \(found.errors)")
            }
            // Nothing else can be said of this database, nor of its cache.
            try await w.run(
                ["-rf", w.cache] + ["", "-wal", "-shm", ".lock"].map { w.database + $0 }, program: "/bin/rm")
        }
    }
}
