import TestSupport
import Testing

/// Contact sheets of a job's pictures.
@Suite(.timeLimit(.minutes(15))) struct SheetTests {
    /// Red grows with the picture's number, so that each tile can be told.
    private static func reply(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        guard let number = Pictures.number(in: request.path) else { return .status(404) }
        let colour = TestImages.solid((UInt8(20 * number), 0, 200, 255))
        return .ok(TestImages.png(40, 40, pixel: colour), type: "image/png")
    }

    /// The red of a sheet's pixel.
    private func red(_ w: TestWorker, _ sheet: String, _ x: Int, _ y: Int) async throws -> Int {
        let point = try await w.run("getpoint", sheet, "\(x)", "\(y)", program: "vips").line
        return try #require(Int(point.prefix { $0 != " " }))
    }

    @Test(arguments: [1, 2, 5, 32])
    func `Each picture has a tile in the rows of the sheet`(_ across: Int) async throws {
        try await withWorker(Self.reply) { w in
            try await w.enqueue((0..<12).map { w.url("/\($0).png") } + [w.url("/none")])
            try await w.drain(expecting: 2)
            let sheet = w.place("sheet.png")
            let told = try await w.run("sheet", "1", sheet, "--across", "\(across)", "--tile", "20")
            #expect(told.line == "12 of 12 pictures")
            let columns = min(across, 12)
            let size = try await w.run("-f", "width", sheet, program: "vipsheader").line
            #expect(size == "\(8 + columns * 28)")
            for number in [0, 5, 6, 11] {
                let (x, y) = (18 + number % columns * 28, 18 + number / columns * 28)
                let found = try await red(w, sheet, x, y)
                #expect(abs(found - 20 * number) <= 2, "picture \(number)")
                #expect(try await red(w, sheet, x, y - 13) == 255)
            }
        }
    }

    @Test func `Missing pictures are counted, and wrong arguments are refused`() async throws {
        try await withWorker(Self.reply) { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png")], "--variant", "thumb=30x30,webp")
            try await w.drain()
            let lost = try await w.path(w.url("/1.png"), variant: "thumb")
            try await w.run(lost, program: "rm")
            let sheet = w.place("a.webp")
            let told = try await w.run("sheet", "1", sheet, "--variant", "thumb", "--json", expecting: 2)
            #expect(told.line == #"{"drawn":1,"missing":1}"#)
            #expect(told.errors.contains("1 picture can't be found in the cache any more"))
            #expect(try await w.run("-f", "vips-loader", sheet, program: "vipsheader").line.contains("webp"))
            // Fetched again, so that the cache is whole.
            try await w.enqueue([w.url("/1.png")], "--variant", "thumb=30x30,webp")
            try await w.drain()
            for (words, code, sentence) in [
                (["sheet", "1", "a.foo"], 64, "ending must be a format's"), (["sheet", "9", sheet], 64, "no job 9"),
                (["sheet", "1", "/none/a.png"], 73, "can't be written"),
                (
                    ["sheet", "1", sheet, "--variant", "thumbs"], 64,
                    "Did you mean 'thumb'? Its variants are: original, thumb"
                ),
                (["sheet", "1", sheet, "--across", "33"], 64, "from 1 to 32"),
            ] as [([String], Int32, String)] {
                #expect(try await w.run(words, expecting: code).errors.contains(sentence), "\(words)")
            }
        }
    }
}
