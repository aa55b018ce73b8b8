import Glibc
import TestSupport
import Testing

/// Mistakes with the arguments of one command, with manifests, and with names that are nearly right.
@Suite(.timeLimit(.minutes(15))) struct CommandMistakeTests {
    typealias Row = FirstUseTests.Row
    typealias File = FirstUseTests.File

    static let rows = [
        Row("warm", "'worker warm' needs <batch>: Manifests, or lists of URLs. See: worker warm --help"),
        Row("wait", "'worker wait' needs <jobs>"),
        Row("retry --class timeouts", "'worker retry' needs <job>: The job. See: worker retry --help"),
        Row("export 1", "'worker export' needs <folder>"),
        Row("sheet 1", "'worker sheet' needs <file>"),
        Row("get", "'worker get' needs <url>"),
        Row(
            "prune", "'worker prune' needs --older-than <time>: How long ago a job must have ended.",
            "See: worker prune --help"),
        Row("status --job 1", "Unknown option '--job'. Write its value alone: worker status JOB"),
        Row("retry --job 1", "Unknown option '--job'. Write its value alone: worker retry JOB"),
        Row("enqueue https://a.example/1.jpg --column image", "--column says how to read a list", "add -f FILE"),
        Row("enqueue https://a.example/1.jpg --format csv", "--format says how to read a list", "add -f FILE"),
        Row("enqueue -f list.txt --limit", "The option --limit needs a value: --limit <n>"),
        Row("run --previews", "The option --previews needs a value: --previews <"),
        Row("import nope", "Give either --url-template or --list.", "See: worker import --help"),
        Row("cache remove", "Name URLs, --host or --match.", "See: worker cache remove --help"),
        Row("cache remove nope", "'nope' is no URL."),
        Row("blacklist remove nope", "'nope' is no URL."),
        Row("enqueue -f list.html --base nope", "--base: 'nope' is no URL."),
        Row("results 1 --csv", "Unknown option '--csv'. It is a format: --format csv"),
        Row(
            "recipe show x", "Unknown command 'worker recipe show'. Did you mean 'worker config show'?",
            "The commands are: "),
        Row("run --links tre", "Did you mean 'tree'?"),
        Row("run --evict-first oldst", "Did you mean 'oldest'?"),
        Row("run --delegate-command /bin/true:alow", "there is no hook 'alow'. Did you mean 'allow'?"),
        Row("export 1 out --by hardlnk", "by must be link, reflink, copy or symlink, not 'hardlnk'."),
        Row("export 1 out --name {hst}.{extension}", "'{hst}' is no placeholder. Did you mean '{host}'?"),
    ]

    @Test(arguments: rows) func `A mistake is refused with the missing argument or the nearest name`(_ row: Row)
        async throws
    {
        try await withWorker { w in
            try await w.run("init")
            let refused = try await w.run(row.arguments, expecting: row.code)
            for piece in row.answer { #expect(refused.errors.contains(piece), "\(refused.errors)") }
            // A sentence on a line of its own, as every other mistake is told.
            #expect(refused.errors.hasPrefix("worker: ") && refused.errors.filter(\.isNewline).count == 1)
        }
    }

    /// Options that say how to read another kind of list than the one that is there.
    static let lists = [
        File(
            "enqueue -f FILE --column image", "urls.txt", "http://a.example/1.jpg\n",
            "urls.txt has no column 'image'. Its columns are: "),
        File(
            "enqueue -f FILE --format text --column image", "urls.txt", "http://a.example/1.jpg\n",
            "--column has no effect: ", "urls.txt was read as a list of URLs, one on a line.",
            "--format csv or --format tsv"),
        File(
            "enqueue -f FILE --path image", "urls.csv", "url,sku\nhttp://a.example/1.jpg,7\n",
            "--path has no effect: ", "was read as CSV.", "--format jsonl"),
        File(
            "enqueue -f FILE --base http://a.example/", "urls.jsonl", #"{"url":"http://a.example/1.jpg"}"# + "\n",
            "--base has no effect: ", "was read as JSON Lines.", "--format html"),
    ]

    @Test(arguments: lists) func `An option for another kind of list is refused, and nothing is enqueued`(
        _ file: File,
    ) async throws {
        try await withWorker { w in
            try await w.run("init")
            _ = try await file.refused(by: w)
            #expect(try await w.value("SELECT count(*) FROM jobs") == "0")
        }
    }

    @Test func `Options of fetched lists are named where no list is fetched`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let one = ["enqueue", "https://a.example/1.jpg"]
            let added = try await w.run(one + ["--allow-addresses", "loopback"])
            #expect(added.errors.contains("For the pictures write: worker run --allow-addresses loopback"))
            #expect(try await w.run(one + ["--max-list", "1MiB"]).errors.contains("no list is fetched"))
            #expect(try await !w.run(one).errors.contains("warning"))
        }
    }

    static let manifests = [
        File(
            "manifest check FILE", "m.yaml", "urls: [http://a.example/1.jpg]\nvariants:\n  - a=1x1,wepb\n",
            "m.yaml, line 3: variants: ", "did you mean webp?"),
        File(
            "enqueue --manifest FILE", "m.yaml", "urls: [http://a.example/1.jpg]\noptions: retry-faild\n",
            "m.yaml, line 2: options: ", "Did you mean 'retry-failed'?"),
        File(
            "enqueue --manifest FILE", "m.yaml", "urls: [http://a.example/1.jpg]\nnotify: foo\n",
            "m.yaml, line 2: notify: ", "http or https URL"),
        File(
            "manifest check FILE", "m.yaml", "urls: [http://a.example/1.jpg]\nname: ''\n", "m.yaml, line 2: name must"),
        File(
            "manifest check FILE", "m.yaml", "urls:\n  - http://a.example/1.jpg\n  - foo.jpg\n",
            "m.yaml: line 3: 'foo.jpg' is no URL."),
        File(
            "enqueue --manifest FILE", "m.yaml", "urls:\n  - http://a.example/1.jpg\n  - a.example/2.jpg\n",
            "m.yaml: line 3: 'a.example/2.jpg' has no scheme."),
        File(
            "manifest check FILE", "m.yaml", "urls: [http://a.example/1.jpg\nname: x\n",
            "it is no YAML. Line 2, column 5: ',' or ']' is expected here."),
        File(
            "manifest check FILE", "m.yaml", "urls: [http://a.example/1.jpg]\nurls: []\n",
            "there is more than one 'urls'."),
        File(
            "run --config FILE", "c.yaml", "concurrency: [1, 2\nper-host: 3\n",
            "c.yaml is not YAML. Line 2, column 9: ',' or ']' is expected here."),
    ]

    @Test(arguments: manifests) func `A mistake in a manifest is refused with its line`(_ file: File) async throws {
        try await withWorker { w in
            try await w.run("init")
            let errors = try await file.refused(by: w)
            for word in ["parser:", "scanner:", "Context", "flow sequence"] {
                #expect(!errors.contains(word), "\(errors)")
            }
            #expect(try await w.value("SELECT count(*) FROM jobs") == "0")
        }
    }

    @Test func `A nearly right name is answered with the nearest name`() async throws {
        try await withWorker { w in
            let job = try await w.enqueue(w.url("/1.png"), w.url("/nothing"), "--variant", "thumb=8x8,png")
            try await w.run(["run", "--drain", "--quiet"] + TestWorker.quick, expecting: 2)
            let other = try await w.run("get", w.url("/1.png"), "--variant", "thmb", expecting: 1).errors
            #expect(other.contains("Did you mean 'thumb'?") && other.contains("Cached: original, thumb."), "\(other)")
            #expect(other.contains("See: worker explain '\(w.url("/1.png"))'"))
            let elsewhere = try await w.run("retry", job, "--host", "127.0.0.2").errors
            #expect(elsewhere.contains("0 items go back into the queue."))
            #expect(elsewhere.contains("The job's failures are: 1 http-404 at 127.0.0.1."), "\(elsewhere)")
            #expect(elsewhere.contains("Did you mean '127.0.0.1'?"), "\(elsewhere)")
            #expect(try await w.run("cache", "pin").errors == "Nothing is pinned.\n")
            let quick = try await w.run("cache", "verify", "--quick").output
            #expect(quick.contains("by name and size; none was read"), "\(quick)")
            let some = try await w.run("cache", "verify", "--sample", "100").output
            #expect(some.contains("2 of them were read"), "\(some)")
        }
    }

    // MARK: - URLs on the blacklist

    @Test func `A URL that failed in an earlier run is reported as a failure of the later run`() async throws {
        try await withWorker { w in
            try await w.run("init")
            try w.write(Array("\(w.url("/nothing"))\n\(w.url("/1.png"))\n".utf8), to: w.place("n.txt"))
            let warm = ["warm", w.place("n.txt"), "--quiet"] + TestWorker.quick
            let first = try await w.run(warm, expecting: 2).output
            #expect(first.contains("1 failed") && first.contains("; 1 http-404 at 127.0.0.1; see: worker results 1"))
            let second = try await w.run(warm, expecting: 2).output
            #expect(second.contains("0 failed, 1 blacklisted"), "\(second)")
            #expect(second.contains("; 1 http-404 at 127.0.0.1; see: worker results 2"), "\(second)")
            let job = try await w.enqueue(w.url("/nothing"))
            let errors = try await w.run(["run", "--drain"] + TestWorker.quick, expecting: 2).errors
            for line in [
                "failures of the job: 1 http-404", "Try again with: worker retry \(job) --retry-failed",
                "See why with: worker results \(job)",
            ] {
                #expect(errors.contains(line), "\(line) in \(errors)")
            }
        }
    }
}
