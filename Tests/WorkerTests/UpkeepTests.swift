import Glibc
import SystemPackage
import TestSupport
import Testing

/// Upkeep of the cache and the database, and its flags.
@Suite(.timeLimit(.minutes(15))) struct UpkeepTests {
    @Test func ageIsCountedFromTheChosenTime() async throws {
        try await withWorker { w in
            let columns = ["created", "modified", "used"]
            try await w.enqueue((0..<3).map { w.url("/\($0).png") })
            try await w.drain()
            for (number, column) in columns.enumerated() {
                try await w.sql(
                    """
                    UPDATE blobs SET \(column)_at = 1 WHERE hash =
                        (SELECT blob FROM entries WHERE key = '\(w.url("/\(number).png"))')
                    """)
            }
            for (number, column) in columns.enumerated() {
                try await w.run("cache", "gc", "--cache-max-age", "1h", "--expire-by", column)
                try await w.run("get", w.url("/\(number).png"), expecting: 1)
                #expect(w.blobs.count == 2 - number)
            }
            try await w.run("cache", "gc", "--expire-by", "size", expecting: 64)
        }
    }

    @Test(arguments: ["sources", "variants", "oldest"])
    func theOptionDecidesWhichFilesAreEvictedFirst(_ first: String) async throws {
        try await withWorker { w in
            try await w.enqueue((0..<2).map { w.url("/\($0).png") }, "--variant", "thumb=16x12,png")
            try await w.drain()
            // First, since it is a use.
            let oldest = try await w.path(w.url("/0.png"), variant: "thumb")
            try await w.sql(
                """
                UPDATE blobs SET used_at = 1 WHERE hash =
                    (SELECT blob FROM entries WHERE key = '\(w.url("/0.png"))' AND variant = 'thumb')
                """)
            let one = Int(try await w.value("SELECT bytes - 1 FROM cache_totals")) ?? 0
            try await w.run(
                "cache", "gc", "--cache-max-age", "never", "--cache-max-size", "\(one)B", "--cache-low-water", "100",
                "--evict-first", first)
            let left = try await w.value("SELECT sum(is_source), sum(NOT is_source) FROM blobs")
            #expect(left == (first == "sources" ? "1|2" : "2|1"))
            #expect((access(oldest, F_OK) == 0) == (first == "sources"))
        }
    }

    @Test(.enabled(if: getuid() == 0, "only root can mount a small disk"))
    func filesAreEvictedUntilTheDiskHasItsFreeSpace() async throws {
        try await withWorker { w in
            try await SmallDisk.lend { disk in
                try disk.hold(w.cache)
                try await w.enqueue((0..<40).map { w.url("/\($0).png") })
                try await w.drain()
                let free = try disk.free()
                // Half of what the pictures take is missing.
                try await w.run("cache", "gc", "--min-free", "\(free + 20 * 4_096)B")
                #expect(try disk.free() >= free + 20 * 4_096)
                #expect((1..<40).contains(w.blobs.count))
                // A worker does it by itself.
                try await w.enqueue(w.url("/77.png"))
                try await w.drain("--min-free", "\(free + 30 * 4_096)B")
                #expect(try disk.free() >= free + 30 * 4_096)
                try disk.giveBack(w.cache)
            }
        }
    }

    /// A disk of 16 MiB, of which a twentieth is 819 KiB.
    @Test(.enabled(if: getuid() == 0, "only root can mount a small disk"))
    func `Without the flag a twentieth of a small disk stays free`() async throws {
        try await withWorker { w in
            try await SmallDisk.lend { disk in
                try disk.hold(w.cache)
                try await w.enqueue(w.url("/1.png"))
                try disk.fill(leaving: 760 << 10)
                let run = ["run", "--drain", "--allow-addresses", "loopback"]
                let refused = try await w.run(run, expecting: 75)
                #expect(refused.errors.contains("--min-free"), "\(refused.errors)")
                #expect(w.origin.requests.isEmpty)
                disk.empty()
                try disk.fill(leaving: 900 << 10)
                try await w.run(run)
                #expect(try await w.counts("1") == "1|0|0|0|0")
                disk.empty()
                try disk.giveBack(w.cache)
            }
        }
    }

    @Test(.enabled(if: getuid() == 0, "only root can mount a small disk"))
    func aBackupToAFullDiskFailsWithThePathOfTheBackup() async throws {
        try await withWorker { w in
            try await SmallDisk.lend { disk in
                try await w.run("init")
                try await w.enqueue((0..<200).map { w.url("/\($0).png") })
                try disk.fill(leaving: 8_192)
                let copy = disk.path + "/copy.db"
                let result = try await w.run("db", "backup", copy, expecting: 75)
                #expect(result.errors.contains(copy) && !result.errors.contains(w.database), "\(result.errors)")
                #expect(fileNames(in: disk.path) == ["filler"])
            }
        }
    }

    @Test func aVerificationReadsAtItsRate() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<4).map { w.url("/\($0).png") })
            try await w.drain()
            let bytes = Int(try await w.value("SELECT bytes FROM cache_totals")) ?? 0
            let start = ContinuousClock.now
            try await w.run("cache", "verify", "--rate", "\(bytes / 2)B")
            #expect(.now - start >= .milliseconds(1_900))
        }
    }

    @Test func backupsAreMadeAtTheirIntervalAndTheOldestAreDeleted() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            let folder = w.place("copies")
            let child = try w.start(
                "--backup-dir", folder, "--backup-every", "1s", "--backup-keep", "2", "--collect-every", "100ms")
            var seen: Set<String> = []
            try await w.eventually("four copies were made", within: .seconds(60)) {
                seen.formUnion(fileNames(in: folder).filter { $0.hasSuffix(".db") })
                return seen.count >= 4
            }
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
            let left = fileNames(in: folder)
            #expect(left.count == 2)
            for name in left {
                let check = try await w.run(
                    ["\(folder)/\(name)", "PRAGMA integrity_check; SELECT count(*) FROM jobs"], program: "sqlite3")
                #expect(check.lines == ["ok", "1"], "\(name)")
            }
        }
    }

    @Test func endedJobsArePrunedWhenTheirTimeIsOver() async throws {
        try await withWorker { w in
            let child = try await w.startRegistered("--keep-jobs", "200ms", "--collect-every", "100ms")
            try await w.enqueue((0..<3).map { w.url("/\($0).png") })
            try await w.eventually("the job has ended and gone") {
                try await w.value("SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM items)") == "0"
            }
            try await w.run("get", w.url("/2.png"))
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
        }
    }

    /// Every round writes the same rows, so a log that grows with each round would not be bounded.
    @Test func theLogStaysBoundedWhileAWorkerRuns() async throws {
        try await withWorker { w in
            let child = try await w.startRegistered("--keep-jobs", "0", "--collect-every", "100ms")
            var logs: [Int] = []
            for round in 0..<10 {
                try await w.sql(
                    """
                    WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
                    INSERT INTO jobs (options, urls)
                        SELECT 'from-cache-only', json_group_array('\(w.url("/none/\(round)-"))' || i) FROM n
                    """)
                try await w.eventually("round \(round) has ended", within: .seconds(60)) {
                    try await w.value("SELECT ifnull(sum(queued + active + delayed), 0) FROM jobs") == "0"
                }
                var info = stat()
                #expect(stat(w.database + "-wal", &info) == 0)
                logs.append(Int(info.st_size))
            }
            // Cut at eight times what it is looked after at, and by then a little more may have come.
            #expect((logs.max() ?? 0) < 48 << 20, "\(logs)")
            try await w.eventually("the jobs have gone") { try await w.value("SELECT count(*) FROM items") == "0" }
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
        }
    }
}
