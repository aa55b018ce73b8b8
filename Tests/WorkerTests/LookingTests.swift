import Glibc
import TestSupport
import Testing

/// Commands that read a database and a cache: status, results, get, explain, verify, doctor.
@Suite(.serialized, .timeLimit(.minutes(15))) struct LookingTests {
    private struct Progress: Decodable {
        let job: Int
        let name: String?
        let state: String
        let total, ended, done, failed: Int
        let percent: Double
    }

    private struct Row: Decodable {
        let url, state: String
        let variant, format, path: String?
        let `class`: String?
        let width: Int?
    }

    private func withOneGoodAndOneMissing(_ body: (TestWorker) async throws -> Void) async throws {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png"), w.url("/missing")], "--variant", "thumb=16x12,webp", "--name", "two")
            try await w.drain(expecting: 2)
            try await body(w)
        }
    }

    @Test func statusPrintsATableAndJSON() async throws {
        try await withOneGoodAndOneMissing { w in
            let table = try await w.run("status")
            #expect(table.lines.count == 2)
            #expect(table.lines.last?.contains("two") == true)
            #expect(table.errors.isEmpty)
            let all = try await w.run("status", "--json").json([Progress].self)
            #expect(all.map(\.job) == [1])
            let one = try await w.run("status", "1", "--json").json(Progress.self)
            #expect(one.state == "finished" && one.total == 2 && one.done == 1 && one.failed == 1 && one.percent == 100)
            let watched = try await w.run("status", "1", "--watch")
            #expect(watched.output.hasPrefix("job 1 (two): finished, 2 of 2 ended"))
            let none = try await w.run("status", "9", expecting: 64)
            #expect(none.errors == "worker: There is no job 9. List the jobs with: worker status\n")
        }
    }

    @Test func resultsPrintsATableJSONLinesAndCSV() async throws {
        try await withOneGoodAndOneMissing { w in
            let table = try await w.run("results", "1")
            #expect(table.lines.count == 4)
            #expect(table.lines[0].hasPrefix("state"))
            #expect(table.output.contains("http-404"))
            let rows = try await w.run("results", "1", "--format", "jsonl").jsonLines(Row.self)
            #expect(rows.map(\.variant) == ["original", "thumb", nil])
            #expect(rows.map(\.class) == [nil, nil, "http-404"])
            #expect(rows[1].width == 16 && rows[1].format == "webp")
            let path = try #require(rows[1].path)
            #expect(access("\(w.cache)/\(path)", R_OK) == 0)
            let csv = try await w.run("results", "1", "--format", "csv")
            #expect(
                csv.lines[0] == """
                    job,item,url,state,cached,variant,format,width,height,size,path,class,message,dominant_colour,\
                    blurhash,thumbhash,phash,source_format,source_width,source_height,frames,has_alpha,damage,scale,\
                    served_url,meta,bytes_from
                    """)
            #expect(csv.lines.count == 4)
            #expect(csv.lines[2].contains(",thumb,webp,16,12,"))
        }
    }

    @Test func getPrintsThePathOrThatTheURLIsNotCached() async throws {
        try await withOneGoodAndOneMissing { w in
            let path = try await w.path(w.url("/1.png"))
            #expect(path.hasPrefix("\(w.cache)/blobs/sha256/"))
            #expect(try w.bytes(of: path) == Pictures.png(1))
            var info = stat()
            stat(path, &info)
            #expect(info.st_mode & 0o777 == 0o444)
            for arguments in [[w.url("/missing")], [w.url("/1.png"), "--variant", "card"], ["http://never.asked/"]] {
                let refused = try await w.run(["get"] + arguments, expecting: 1)
                #expect(refused.output.isEmpty)
                #expect(refused.errors.contains("is not cached"))
            }
        }
    }

    @Test func aDamagedBlobIsQuarantinedAndMadeAnew() async throws {
        try await withOneGoodAndOneMissing { w in
            let path = try await w.path(w.url("/1.png"))
            try w.flipByte(of: path)
            let refused = try await w.run("get", w.url("/1.png"), expecting: 1)
            #expect(refused.output.isEmpty)
            #expect(access(path, F_OK) != 0)
            #expect(fileNames(in: "\(w.cache)/quarantine").count == 1)
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            #expect(try w.bytes(of: try await w.path(w.url("/1.png"))) == Pictures.png(1))
            #expect(w.origin.requestCount("/1.png") == 2)
        }
    }

    @Test func aDamagedSourceIsNotUsedForAVariant() async throws {
        try await withOneGoodAndOneMissing { w in
            try w.flipByte(of: try await w.path(w.url("/1.png")))
            try await w.enqueue(w.url("/1.png"), "--variant", "new=10x10")
            try await w.drain()
            #expect(try await w.counts("2") == "1|0|0|0|0")
            #expect(w.origin.requestCount("/1.png") == 2)
        }
    }

    @Test func verifyFindsAFlippedBitAndAMissingFile() async throws {
        try await withOneGoodAndOneMissing { w in
            #expect(try await w.run("cache", "verify").output.hasPrefix("2 blobs are good"))
            let original = try await w.path(w.url("/1.png"))
            let thumb = try await w.path(w.url("/1.png"), variant: "thumb")
            try w.flipByte(of: original)
            unlink(thumb)
            let found = try await w.run("cache", "verify", expecting: 74)
            #expect(found.output.contains("damaged: "))
            #expect(found.output.contains("missing: "))
            let again = try await w.run("cache", "verify", expecting: 74)
            #expect(again.output.hasPrefix("0 blobs are good"))
            #expect(again.output.contains("lost, not restored yet: \(w.url("/1.png")) (thumb)"))
        }
    }

    private struct Explained: Decodable {
        struct Item: Decodable {
            let state: String
            let attempts: Int
            let `class`: String?
        }
        struct Entry: Decodable { let failure: String }
        struct Source: Decodable {
            let format: String
            let width: Int
        }
        struct Variant: Decodable { let spec: String }
        let source: Source?
        let variants: [Variant]
        let blacklisted: Entry?
        let items: [Item]
    }

    @Test func explainShowsTheCacheTheBlacklistAndTheItemsOfAURL() async throws {
        try await withOneGoodAndOneMissing { w in
            let good = try await w.run("explain", w.url("/1.png"))
            #expect(good.output.contains("source    png 64x48"))
            #expect(good.output.contains("webp 16x12"))
            #expect(good.output.contains("job 1, item 1: done, 1 try"))
            let missing = try await w.run("explain", w.url("/missing"))
            #expect(missing.output.contains("not cached"))
            #expect(missing.output.contains("blacklist http-404"))
            let unknown = try await w.run("explain", "http://never.asked/", expecting: 1)
            #expect(unknown.errors.contains("no job has asked for it"))
            let facts = try await w.run("explain", w.url("/1.png"), "--json").json(Explained.self)
            #expect(facts.source?.format == "png" && facts.source?.width == 64 && facts.variants.count == 1)
            let failure = try await w.run("explain", w.url("/missing"), "--json").json(Explained.self)
            #expect(failure.blacklisted?.failure == "http-404")
            #expect(failure.items.map(\.class) == ["http-404"] && failure.items.map(\.attempts) == [1])
        }
    }

    private struct Finding: Decodable { let part, verdict, detail: String }

    @Test func doctorReportsOnEachPart() async throws {
        try await withWorker { w in
            try await w.run("init")
            let child = try await w.startRegistered()
            let text = try await w.run("doctor")
            #expect(
                text.lines.map { $0.split(separator: ":").dropFirst().first.map(String.init) } == [
                    " libraries", " coders", " database", " cache", " helper", " sandbox",
                ])
            #expect(text.output.contains("pid \(child.pid)"))
            let findings = try await w.run("doctor", "--json").json([Finding].self)
            #expect(findings.map(\.part) == ["libraries", "coders", "database", "cache", "helper", "sandbox"])
            #expect(findings.allSatisfy { $0.verdict != "failure" })
        }
    }

    @Test func doctorCreatesNoFiles() async throws {
        try await withWorker { w in
            let found = try await w.run("doctor", "--cache", "\(w.place("new"))/cache", "--db", w.place("new.db"))
            #expect(found.output.contains("warning: cache: There is no cache at "))
            #expect(found.output.contains("ok: helper: "))
            #expect(access(w.place("new"), F_OK) != 0 && access(w.place("new.db"), F_OK) != 0)
        }
    }

    @Test func doctorChangesNoFiles() async throws {
        try await withOneGoodAndOneMissing { w in
            let list = ["-c", "find '\(w.cache)' '\(w.database)' -printf '%p %s %T@ %C@\\n' | sort"]
            let before = try await w.run(list, program: "/bin/sh").output
            try await w.run("doctor")
            #expect(try await w.run(list, program: "/bin/sh").output == before)
        }
    }

    @Test func doctorMakesNoLockBesideACopiedDatabase() async throws {
        try await withOneGoodAndOneMissing { w in
            let copy = w.place("copy/worker.db")
            try await w.run(["-c", "mkdir '\(w.place("copy"))' && cp '\(w.database)' '\(copy)'"], program: "/bin/sh")
            let found = try await w.run("doctor", "--db", copy, expecting: nil).output
            #expect(found.contains("\(copy), SQLite"), "\(found)")
            #expect(try await w.run("-A", w.place("copy"), program: "/bin/ls").output == "worker.db\n")
        }
    }

    @Test func explainNamesTheSettingOfABlacklistEntry() async throws {
        try await withWorker { w in
            try await w.enqueue("http://169.254.169.254/a.png")
            try await w.drain(expecting: 2)
            let found = try await w.run("explain", "http://169.254.169.254/a.png").output
            #expect(found.contains("; a worker with another --allow-addresses ignores it: "), "\(found)")
        }
    }

    @Test func theUmaskAppliesToTheDatabase() async throws {
        try await withWorker { w in
            try await w.run(
                ["-c", "umask 077; exec \"$@\"", "sh", TestWorker.binary, "init"], program: "/bin/sh")
            var info = stat()
            #expect(stat(w.database, &info) == 0 && info.st_mode & 0o777 == 0o600)
        }
    }

    @Test func doctorReportsAnUnusableCacheOrDatabase() async throws {
        try await withWorker { w in
            let nowhere = try await w.run("doctor", "--cache", "/proc/nowhere", expecting: 70)
            #expect(nowhere.output.contains("failure: cache: "))
            let folder = try w.file("not-a-database", String(repeating: "This is not SQLite. ", count: 100))
            let damaged = try await w.run("doctor", "--db", folder, expecting: 70)
            #expect(damaged.output.contains("failure: database: "))
        }
    }

    @Test func initCreatesTheMissingFilesAndKeepsAnExistingDatabase() async throws {
        try await withWorker { w in
            let first = try await w.run("init")
            #expect(first.output == "database \(w.database)\ncache    \(w.cache)\n")
            #expect(try w.text(of: "\(w.cache)/CACHE_VERSION").hasPrefix("prefetch-cache 1 sha256"))
            try await w.enqueue(w.url("/1.png"))
            try await w.run("init")
            #expect(try await w.value("SELECT count(*) FROM items") == "1")
        }
    }
}
