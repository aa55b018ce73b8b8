import Glibc
import TestSupport
import Testing

/// Pictures that are stored by hand.
@Suite(.timeLimit(.minutes(15))) struct CachePutTests {
    private func file(_ w: TestWorker, _ name: String, _ bytes: [UInt8]) throws -> String {
        let path = w.place(name)
        try w.write(bytes, to: path)
        return path
    }

    private struct Put: Decodable {
        let url, variant, change, blob, format, path: String
        let width, height, size: Int
    }

    @Test func `A stored picture is found, and jobs make its variants without a request`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let url = w.url("/1.png")
            let put = try await w.run("cache", "put", url, try file(w, "a", Pictures.png(7)))
            #expect(try await w.path(url) == put.line)
            #expect(try w.bytes(of: put.line) == Pictures.png(7))
            try await w.enqueue(url, "--variant", "v=8x,png")
            try await w.drain()
            #expect(try await w.counts("1") == "0|1|0|0|0")
            #expect(w.origin.requests.isEmpty)
            #expect(try await w.path(url, variant: "v").contains("/blobs/"))
            // The source has no validators, so the origin is asked for all of it.
            try await w.enqueue(url, "--option", "refresh-cached")
            try await w.drain()
            #expect(w.origin.requestCount("/1.png") == 1)
            #expect(try w.bytes(of: try await w.path(url)) == Pictures.png(1))
        }
    }

    @Test func `Storing a picture again replaces it, also from standard input, unless the bytes are the same`()
        async throws
    {
        try await withWorker { w in
            try await w.run("init")
            let url = w.url("/1.png")
            let (one, two) = (try file(w, "1", Pictures.png(1)), try file(w, "2", Pictures.png(2)))
            let first = try await w.run("cache", "put", url, one, "--json").json(Put.self)
            #expect(first.change == "stored" && first.variant == "original" && first.format == "png")
            #expect(first.width == 64 && first.height == 48 && first.size == Pictures.png(1).count)
            #expect(try await w.run("cache", "put", url, one, "--json").json(Put.self).change == "cached")
            let command = "'\(TestWorker.binary)' cache put '\(url)' - --json <'\(two)'"
            let second = try await w.run("-c", command, program: "sh").json(Put.self)
            #expect(second.change == "replaced" && second.blob != first.blob)
            #expect(try w.bytes(of: try await w.path(url)) == Pictures.png(2))
            #expect(try await w.value("SELECT count(*) FROM entries") == "1")
        }
    }

    @Test func `A damaged picture is refused with its failure class, and the stored picture stays`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let url = w.url("/1.png")
            let good = try await w.run("cache", "put", url, try file(w, "good", Pictures.png(1))).line
            let half = Array(Pictures.png(3).prefix(Pictures.png(3).count / 2))
            let cases: [(String, [UInt8], [String])] = [
                ("truncated", half, []), ("not-an-image", Array("<html></html>".utf8), []), ("bad-image", [], []),
                ("too-large", Pictures.png(4), ["--max-body", "100B"]),
                ("too-many-pixels", TestImages.pngHeaderOnly(50_000, 50_000), []),
            ]
            for (failure, bytes, flags) in cases {
                let path = try file(w, "bad", bytes)
                let refused = try await w.run(["cache", "put", url, path] + flags, expecting: 2)
                #expect(refused.errors.contains("worker: \(failure): "), "\(refused.errors)")
                #expect(refused.output.isEmpty)
            }
            let missing = try await w.run("cache", "put", url, w.place("none"), expecting: 2)
            #expect(missing.errors.contains("worker: http-404: The file can't be read"))
            #expect(try await w.path(url) == good)
            #expect(w.blobs.count == 1)
        }
    }

    @Test(arguments: ["photo.jpg", "", "7", "/a.jpg", "http://", "1http://a/"])
    func `A text that is no URL is refused`(_ text: String) async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.run("cache", "put", text, try file(w, "a", Pictures.png(1)), expecting: 64)
            #expect(w.blobs.isEmpty)
        }
    }

    @Test func `A variant is stored under its name, and jobs with the same variant use it`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let url = w.url("/1.png")
            let thumb = try file(w, "thumb", TestImages.png(8, 6))
            // A variant has a place of its own only beside a source.
            let alone = try await w.run("cache", "put", url, thumb, "--variant", "v=8x,png", expecting: 2)
            #expect(alone.errors.contains("worker: not-cached: "))
            try await w.run("cache", "put", url, try file(w, "a", Pictures.png(1)))
            let other = try await w.run("cache", "put", url, thumb, "--variant", "v=8x,webp", expecting: 2)
            #expect(other.errors.contains("worker: filtered: The file is png, and the variant 'v' is webp."))
            let path = try await w.run("cache", "put", url, thumb, "--variant", "v=8x,png").line
            #expect(try await w.path(url, variant: "v") == path)
            try await w.enqueue(url, "--variant", "v=8x,png")
            try await w.drain()
            #expect(try await w.path(url, variant: "v") == path)
            #expect(w.origin.requests.isEmpty)
            // By its name alone, it takes the place of that variant, for jobs as well.
            let next = try file(w, "next", TestImages.png(8, 6, pixel: TestImages.solid((1, 2, 3, 255))))
            let replaced = try await w.run("cache", "put", url, next, "--variant", "v", "--json").json(Put.self)
            #expect(replaced.change == "replaced")
            try await w.enqueue(url, "--variant", "v=8x,png")
            try await w.drain()
            #expect(try await w.path(url, variant: "v") == replaced.path)
            for wrong in ["a b", "v=", "v=8x w=4x", "v=8x,png,@1+@2"] {
                try await w.run("cache", "put", url, next, "--variant", wrong, expecting: 64)
            }
        }
    }

    @Test func `Storing a picture removes its URL from the blacklist`() async throws {
        try await withWorker { w in
            let url = w.url("/missing")
            try await w.enqueue(url)
            try await w.drain(expecting: 2)
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "1")
            try await w.run("cache", "put", url, try file(w, "a", Pictures.png(1)))
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
            try await w.enqueue(url)
            try await w.drain()
            #expect(try await w.counts("2") == "0|1|0|0|0")
        }
    }

    @Test func `A picture is stored while a worker runs, and the web server's links are updated`() async throws {
        try await withWorker { w in
            let worker = try await w.startRegistered("--links", "tree", "--cache-max-size", "1MiB")
            let url = w.url("/1.png")
            for number in [1, 2] {
                let path = try file(w, "\(number)", Pictures.png(number))
                try await w.run("cache", "put", url, path, "--cache-max-size", "1MiB")
                let link = try await w.run("get", url, "--link").line
                #expect(try w.bytes(of: link) == Pictures.png(number))
            }
            let job = try await w.enqueue(url, "--variant", "v=8x,png")
            try await w.untilEnded(job)
            #expect(try await w.counts(job) == "0|1|0|0|0")
            #expect(worker.exit == nil)
            #expect(try await w.value("SELECT count(*) FROM workers") == "1")
            worker.send(SIGTERM)
            #expect(try await worker.wait() == .code(0))
            try await w.run("run", "--drain", "--links", "none")
            try await w.run(["-rf", w.cache + "/links"], program: "/bin/rm")
        }
    }

    @Test func `Storing pictures keeps to the size limit of the cache`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let size = Pictures.png(1).count
            let limit = ["--cache-max-size", "\(3 * size)B"]
            for number in 1...6 {
                let path = try file(w, "a", Pictures.png(number))
                try await w.run(["cache", "put", w.url("/\(number).png"), path] + limit)
                #expect(w.blobs.count <= 3)
            }
            _ = try await w.path(w.url("/6.png"))
            #expect(try await w.value("SELECT count(*) FROM reservations") == "0")
            #expect(try await w.value("SELECT count(*) FROM workers") == "0")
            let large = try await w.run(
                "cache", "put", w.url("/7.png"), try file(w, "a", Pictures.png(7)), "--cache-max-size", "\(size - 1)B",
                expecting: 2)
            #expect(large.errors.contains("worker: too-large: "))
            // If all that is there is pinned, there is no room.
            try await w.run(["cache", "clear", "--yes"])
            try await w.run(["cache", "pin"] + (1...3).map { w.url("/\($0).png") })
            for number in 1...3 {
                let path = try file(w, "a", Pictures.png(number))
                try await w.run(["cache", "put", w.url("/\(number).png"), path] + limit)
            }
            let full = try await w.run(
                ["cache", "put", w.url("/4.png"), try file(w, "a", Pictures.png(4))] + limit, expecting: 75)
            #expect(
                full.errors.contains("The cache is full") && full.errors.contains("27996 are pinned"), "\(full.errors)")
            #expect(try await w.value("SELECT count(*) FROM reservations") == "0")
        }
    }
}
