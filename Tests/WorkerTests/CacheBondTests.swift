import Glibc
import TestSupport
import Testing

/// A database and a cache belong together: with another database's cache, a worker would take every file for an orphan.
@Suite(.timeLimit(.minutes(15))) struct CacheBondTests {
    @Test func `A command with another database is refused and changes no file of the cache`() async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png")])
            try await w.drain()
            let file = try await w.value("SELECT path FROM results LIMIT 1")
            let other = w.database + ".other"
            defer { for end in ["", ".lock", "-wal", "-shm"] { unlink(other + end) } }
            try await w.run(["init", "--db", other, "--cache", w.cache + ".own"])
            defer { _ = try? ChildProcess.run("rm", ["-r", w.cache + ".own"]) }
            for command in [
                ["run", "--drain", "--orphan-grace", "0"], ["cache", "gc", "--orphan-grace", "0"],
                ["cache", "clear", "--yes"],
                ["cache", "verify"], ["get", w.url("/1.png")],
            ] {
                let result = try await w.run(command + ["--db", other], expecting: 73)
                #expect(result.errors.contains("belongs to another database"), "\(command): \(result.errors)")
            }
            #expect(access("\(w.cache)/\(file)", R_OK) == 0)
            try await w.run(["cache", "verify"])
            #expect(try await w.run(["get", w.url("/1.png")]).output.contains(file))
        }
    }

    @Test func `A new folder is refused as the cache of a database that already has a cache`()
        async throws
    {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png")])
            try await w.drain()
            for _ in 0..<2 {
                let told = try await w.run("run", "--drain", "--cache", w.place("new"), expecting: 73)
                #expect(
                    told.errors.contains("are in the cache \(w.cache), and \(w.place("new")) has none"),
                    "\(told.errors)")
            }
            try await w.run("get", w.url("/1.png"))
        }
    }

    @Test func `A cache folder can be used by two names at once`() async throws {
        try await withWorker { w in
            let link = w.place("link")
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            try #require(symlink(w.cache, link) == 0)
            // Two workers at once, each by its own name; neither takes the other's files for left-overs.
            let other = try w.start("--cache", link, "--orphan-grace", "0")
            try await w.enqueue((2..<40).map { w.url("/\($0).png") })
            try await w.drain("--orphan-grace", "0")
            #expect(try await w.run("get", w.url("/1.png"), "--cache", link).line.isEmpty == false)
            try await w.run("cache", "gc", "--cache", link, "--orphan-grace", "0")
            other.send(SIGTERM)
            _ = try await other.wait()
            #expect(try await w.value("SELECT count(*) FROM entries WHERE variant = 'original'") == "39")
            try await w.run("cache", "verify")
            try await w.run("cache", "verify", "--cache", link)
        }
    }

    @Test func `The tree of links of another cache is left alone`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain("--links", "tree")
            let link = try await w.run("get", w.url("/1.png"), "--link").line
            let other = w.place("other.db")
            try await w.run("init", "--db", other, "--cache", w.place("own"))
            for links in ["tree", "none"] {
                try await w.run("run", "--drain", "--db", other, "--links", links, expecting: 73)
                #expect(access(link, R_OK) == 0)
            }
            try await w.drain("--links", "none")
        }
    }

    @Test func `A cache whose database is lost is adopted as the message says, and the lost database is refused`()
        async throws
    {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png")])
            try await w.drain()
            let files = w.blobs.sorted()
            let other = w.place("other.db")
            try await w.run("init", "--db", other, "--cache", w.place("own"))
            for isMissing in [false, true] {
                let path = isMissing ? w.place("missing.db") : other
                // Without the word nothing is touched.
                let plain = try await w.run("db", "rebuild", "--yes", "--db", path, expecting: 73)
                #expect(plain.errors.contains("worker db rebuild --adopt"), "\(plain.errors)")
                #expect(isMissing == (access(path, F_OK) != 0))
                let before = isMissing ? other : w.database
                let message = isMissing ? plain : try await w.run("run", "--drain", "--db", path, expecting: 73)
                // Word by word what it says.
                let command = try #require(message.errors.split(separator: "worker db rebuild --adopt").last)
                let words = command.split(whereSeparator: \.isWhitespace).map(String.init)
                let options = isMissing ? ["--db", path] : words
                #expect(isMissing || words == ["--db", path, "--cache", w.cache])
                let rebuilt = try await w.run(["db", "rebuild", "--adopt", "--yes"] + options)
                #expect(rebuilt.output.contains("2 files are in the index"), "\(rebuilt.output)")
                #expect(w.blobs.sorted() == files)
                try await w.run("cache", "verify", "--db", path)
                try await w.run("cache", "gc", "--orphan-grace", "0", "--db", path)
                #expect(w.blobs.sorted() == files)
                try await w.run("cache", "gc", "--orphan-grace", "0", "--db", before, expecting: 73)
            }
            // And back: what its own jobs had is there again.
            try await w.run("db", "rebuild", "--yes", "--adopt")
            _ = try await w.path(w.url("/1.png"))
            for name in fileNames(in: w.home) where name.contains(".broken-") { unlink("\(w.home)/\(name)") }
        }
    }

    @Test func `A command with a folder that is no cache is refused and leaves the index as it was`() async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png")])
            try await w.drain()
            let wrong = w.cache + ".wrong"
            for command in [
                ["cache", "verify"], ["cache", "gc"], ["cache", "clear", "--yes"], ["get", w.url("/1.png")],
            ] {
                let result = try await w.run(command + ["--cache", wrong], expecting: 73)
                #expect(result.errors.contains("There is no cache at"), "\(command): \(result.errors)")
                #expect(access(wrong, F_OK) != 0)
            }
            #expect(try await w.value("SELECT count(*) FROM blobs") == "1")
        }
    }

    @Test func `A cache whose record of its database is garbled is refused, and an empty record is none`() async throws
    {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png")])
            try await w.drain()
            try w.write(Array("{\"path".utf8), to: w.cache + "/CACHE_OWNER")
            let refused = try await w.run(["run", "--drain"] + TestWorker.quick, expecting: 73)
            #expect(refused.errors.contains("CACHE_OWNER"), "\(refused.errors)")
            try w.write([], to: w.cache + "/CACHE_OWNER")
            try await w.drain()
        }
    }

    @Test func `A deleted cache is filled again, and a cache without an id gets its database's id`() async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png")])
            try await w.drain()
            // Neither knows of the other, as with what an older version has made.
            try await w.sql("DELETE FROM cache_properties WHERE name = 'cache-id'")
            #expect(unlink(w.cache + "/CACHE_ID") == 0)
            try await w.run(["cache", "verify"])
            #expect(access(w.cache + "/CACHE_ID", R_OK) == 0)
            #expect(try ChildProcess.run("rm", ["-r", w.cache]) == 0)
            try await w.enqueue([w.url("/1.png")])
            try await w.drain()
            #expect(w.origin.requests.count == 2)
        }
    }
}
