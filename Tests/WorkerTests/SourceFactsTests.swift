import TestSupport
import Testing

/// Facts of pictures, such as colours and hashes, in results and near duplicates.
@Suite(.serialized, .timeLimit(.minutes(15))) struct SourceFactsTests {
    private struct Row: Decodable {
        let variant: String?
        let dominantColour, blurhash, thumbhash, phash: String?
        let sourceFormat: String?
        let sourceWidth, sourceHeight, frames: Int?
        let hasAlpha: Bool?
    }

    private struct Report: Decodable {
        struct Source: Decodable { let looks: Looks? }
        struct Looks: Decodable { let dominantColour, blurhash, thumbhash, phash: String? }
        let source: Source?
    }

    private static func reply(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        switch request.path {
        case "/one.png", "/again.png": .ok(Scene.png(1))
        case "/smaller.png": .ok(Scene.png(1, width: 200))
        case "/other.png": .ok(Scene.png(2))
        case "/plain.png": .ok(TestImages.png(30, 30, pixel: TestImages.solid((10, 200, 30, 255))))
        default: .status(404)
        }
    }

    @Test func resultsHaveTheFactsOfTheSource() async throws {
        try await withWorker(Self.reply) { w in
            try await w.enqueue(w.url("/plain.png"), w.url("/one.png"), "--variant", "thumb=64x,png")
            try await w.drain()
            let rows = try await w.run("results", "1", "--format", "jsonl").jsonLines(Row.self)
            #expect(rows.map(\.variant) == ["original", "thumb", "original", "thumb"])
            #expect(rows[0].dominantColour == "#0ac81e" && rows[0].phash == nil)
            #expect(rows[2].blurhash?.count == 28 && rows[2].phash?.count == 16)
            #expect(rows[2].thumbhash == rows[3].thumbhash)
            for row in rows[0...1] {
                #expect(row.sourceFormat == "png" && row.sourceWidth == 30 && row.sourceHeight == 30 && row.frames == 1)
            }
            #expect(rows.allSatisfy { $0.hasAlpha != nil })
            let csv = try await w.run("results", "1", "--format", "csv")
            #expect(csv.lines[1].contains(",#0ac81e,"))
            #expect(!(try await w.run("results", "1").output.contains("#0ac81e")))
            #expect(try await w.value("SELECT phash FROM results WHERE item = 2 LIMIT 1") == rows[2].phash)
            let explained = try await w.run("explain", w.url("/plain.png"))
            #expect(explained.output.contains("mostly #0ac81e, phash none"))
            let looks = try await w.run("explain", w.url("/one.png"), "--json").json(Report.self).source?.looks
            #expect(looks?.phash == rows[2].phash && looks?.blurhash == rows[2].blurhash)
        }
    }

    @Test func onlyNearDuplicatesOfAPictureAreFound() async throws {
        try await withWorker(Self.reply) { w in
            let names = ["/one.png", "/again.png", "/smaller.png", "/other.png", "/plain.png"]
            try await w.enqueue(names.map(w.url), "--variant", "thumb=64x,webp")
            try await w.drain()
            let near = try await w.rows(
                "SELECT near_url FROM near_duplicates WHERE url = '\(w.url("/one.png"))' ORDER BY near_url")
            #expect(near == [w.url("/again.png"), w.url("/smaller.png")])
            #expect(try await w.value("SELECT count(*) FROM near_duplicates WHERE url LIKE '%/other.png'") == "0")
        }
    }

    @Test func aSourceOfAJobWithoutVariantsHasFactsToo() async throws {
        try await withWorker(Self.reply) { w in
            try await w.enqueue(w.url("/one.png"))
            try await w.drain()
            #expect(try await w.value("SELECT length(blurhash), length(phash) FROM results WHERE job = 1") == "28|16")
            // A later job that makes something of it needs no other request.
            try await w.enqueue(w.url("/one.png"), "--variant", "thumb=64x,webp")
            try await w.drain()
            #expect(try await w.value("SELECT length(blurhash), length(phash) FROM results WHERE job = 1") == "28|16")
            #expect(w.origin.requests.count == 1)
        }
    }
}
