import SystemPackage
import TestSupport
import Testing

@testable import Jobs

@Suite("Facts of pictures", .timeLimit(.minutes(15)), .enabled(if: Shell.isThere, Shell.missing))
struct SourceFactsTests {
    private static func looks(_ hash: UInt64?) -> ImagePlaceholders {
        ImagePlaceholders(
            dominantColour: "#0a0b0c", blurHash: "L$HVCg2Y$5Sgl|azjtf7gcfjfQfj",
            thumbHash: "3wcKPZqAh4dwiIh4h3iHiICACPh3",
            perceptualHash: hash.map { Int64(bitPattern: $0) })
    }

    /// Ends an item for each hash; the URLs are `https://j.example/0.jpg` and so on.
    private static func end(_ hashes: [UInt64?], in queue: Queue) async throws {
        _ = try await queue.job(hashes.count)
        for (item, hash) in zip(try await queue.claim(), hashes) {
            guard case .done(let completion) = item.completion(clock: queue.clock) else { continue }
            var source = completion.source
            source.looks = looks(hash)
            let renditions = completion.renditions
            try await queue.end(
                item, .done(Completion(source: source, renditions: renditions, newVariants: [], origin: .network)))
        }
    }

    private static let pairs = """
        SELECT substr(url, 19, 1) || substr(near_url, 19, 1) || ' ' || distance FROM near_duplicates
            WHERE url < near_url ORDER BY 1;
        """

    @Test(arguments: [nil, 0, 5, 0x8000_0000_0000_0001, UInt64.max] as [UInt64?])
    func `The facts of a source are read as they were stored`(hash: UInt64?) async throws {
        try await withQueue { queue in
            try await Self.end([hash], in: queue)
            #expect(try await queue.store.cache.source(key: "https://j.example/0.jpg")?.looks == Self.looks(hash))
            let row = try #require(try await queue.store.reports.results(job: 1, after: 0, limit: 9).first)
            #expect(row.dominantColour == "#0a0b0c" && row.blurHash == "L$HVCg2Y$5Sgl|azjtf7gcfjfQfj")
            #expect(row.thumbHash == "3wcKPZqAh4dwiIh4h3iHiICACPh3")
            #expect(row.perceptualHash == Self.looks(hash).perceptualHex)
        }
    }

    @Test func `The facts of a source stay when the same bytes are stored again undecoded`() async throws {
        try await withQueue { queue in
            try await Self.end([7], in: queue)
            var source = try #require(try await queue.store.cache.source(key: "https://j.example/0.jpg"))
            source.looks = nil
            source.key = "https://other.example/"
            _ = try await queue.store.queue.enqueue(NewJob(urls: [source.key]))
            let item = try #require(try await queue.claim().first)
            let completion = Completion(source: source, renditions: [], newVariants: [], origin: .network)
            try await queue.end(item, .done(completion))
            #expect(try await queue.store.cache.source(key: source.key)?.looks == Self.looks(7))
            #expect(
                try queue.shell.expect("SELECT * FROM near_duplicates WHERE url = 'https://other.example/';")
                    == ["https://other.example/|https://j.example/0.jpg|0"])
        }
    }

    /// Six bits at any places, the sign bit among them, and several in one band; never seven.
    @Test func `Pairs of hashes that differ in up to six bits are found once`() async throws {
        let base: UInt64 = 0x9F3A_5C71_E2D4_680B
        let apart: [UInt64] = [
            0, 1, 1 << 63, 0b111111, 0b111111 << 58, 0x0003_0003_0003_0000, 0x8001_8001_0001_0001,
            0x0007_0007_0001_0000,
        ]
        try await withQueue { queue in
            try await Self.end(apart.map { base ^ $0 }, in: queue)
            let expected = apart.indices.flatMap { one in
                apart.indices.filter { $0 > one }.map { (one, $0, (apart[one] ^ apart[$0]).nonzeroBitCount) }
            }.filter { $0.2 <= 6 }.map { "\($0.0)\($0.1) \($0.2)" }
            #expect(try queue.shell.expect(Self.pairs) == expected.sorted())
            #expect(expected.contains("06 6") && !expected.contains { $0.hasPrefix("07") })
        }
    }

    @Test func `Pictures without a perceptual hash have no near duplicates`() async throws {
        try await withQueue { queue in
            try await Self.end([nil, nil, 1], in: queue)
            #expect(try queue.shell.expect(Self.pairs) == [])
        }
    }

    @Test(.onSQLite, arguments: ["", " WHERE url = 'https://j.example/0.jpg'"])
    func `Near duplicates are found by the indexes of the bands, for one URL and for all`(condition: String)
        async throws
    {
        try await withQueue { queue in
            let plan = try await queue.store.database.read { db in
                try db.rows("EXPLAIN QUERY PLAN SELECT * FROM near_duplicates" + condition)
                    .map { row -> String in row["detail"] }
            }
            for band in 0..<4 {
                #expect(plan.contains { $0.hasPrefix("SEARCH b USING INDEX source_facts_band\(band) (band\(band)=?") })
            }
            #expect(!plan.contains { $0.hasPrefix("SCAN a") || $0.hasPrefix("SCAN b") || $0.hasPrefix("SCAN other") })
            #expect(plan.contains { $0.hasPrefix("SCAN one") } == condition.isEmpty)
        }
    }
}
