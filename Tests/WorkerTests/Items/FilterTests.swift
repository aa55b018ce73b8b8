import TestSupport
import Testing

/// Jobs with options that accept only some pictures.
@Suite(.timeLimit(.minutes(15))) struct FilterTests {
    /// The pictures here have 64×48 pixels.
    static let filters: [(option: String, takes: Bool)] = [
        ("min-width=64", true), ("min-width=65", false), ("max-width=64", true), ("max-width=47", false),
        ("min-height=48", true), ("min-height=65", false), ("max-height=47", false), ("min-area=3072", true),
        ("min-area=3073", false), ("max-area=3071", false), ("min-bytes=10", true), ("min-bytes=1MB", false),
        ("max-bytes=10KiB", true), ("max-bytes=20", false), ("min-aspect=4:3", true), ("min-aspect=1.4", false),
        ("max-aspect=1.5", true), ("max-aspect=1:2", false), ("max-width=50", false),
        ("min-width=10,max-width=20", false),
    ]

    @Test(arguments: filters) func aFilterAcceptsOrRefusesThePicture(_ row: (option: String, takes: Bool)) async throws
    {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), "--option", row.option, "--variant", "v=8x")
            try await w.drain(expecting: row.takes ? 0 : 2)
            #expect(try await w.counts("1") == (row.takes ? "1|0|0|0|0" : "0|0|1|0|0"))
            #expect(try await w.value("SELECT class, attempts FROM failures") == (row.takes ? "" : "filtered|1"))
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
            #expect(w.blobs.isEmpty != row.takes)
            // The same of a picture that is in the cache.
            try await w.enqueue(w.url("/2.png"))
            try await w.drain(expecting: nil)
            try await w.enqueue(w.url("/2.png"), "--option", row.option)
            try await w.drain(expecting: row.takes ? 0 : 2)
            #expect(try await w.counts("3") == (row.takes ? "0|1|0|0|0" : "0|0|1|0|0"))
        }
    }

    @Test func aRefusedBodyIsNotDownloadedToItsEnd() async throws {
        let megabytes = 4 << 20
        let picture = TestImages.png(1_500, 500) { x, y in
            let noise = UInt32(truncatingIfNeeded: x &* 2_654_435_761 &+ y &* 40_503) >> 3
            return (UInt8(noise & 255), UInt8(noise >> 8 & 255), UInt8(noise >> 16 & 255), 255)
        }
        #expect(picture.count > megabytes / 2)
        try await withWorker({ request in
            request.path == "/chunked"
                ? .chunked(totalBytes: megabytes, startingWith: picture)
                : .slowly(picture, pieces: 64, pause: 20)
        }) { w in
            for (number, option) in ["max-width=400", "max-bytes=100000", "min-aspect=4"].enumerated() {
                try await w.enqueue(w.url("/\(number)"), "--option", option)
            }
            try await w.enqueue(w.url("/chunked"), "--option", "max-bytes=100000")
            try await w.drain(expecting: 2)
            #expect(try await w.rows("SELECT DISTINCT class FROM failures") == ["filtered"])
            #expect(try await w.value("SELECT max(received) < \(picture.count / 2) FROM tries WHERE item < 4") == "1")
            #expect(try await w.value("SELECT received < 1000000 FROM tries WHERE item = 4") == "1")
        }
    }

    @Test func anInvalidFilterIsRefused() async throws {
        try await withWorker { w in
            for option in ["min-width=wide", "max-aspect=3:0", "min-bytes=5XB", "min-width=9,max-width=8"] {
                let refused = try await w.run("enqueue", w.url("/1.png"), "--option", option, expecting: nil)
                #expect(refused.exit != .code(0), "\(option)")
            }
        }
    }
}
