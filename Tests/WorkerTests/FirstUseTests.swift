import Glibc
import TestSupport
import Testing

/// Common mistakes of new users, and the answers that give the right form.
@Suite(.timeLimit(.minutes(15))) struct FirstUseTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let arguments: [String]
        /// Pieces of the answer, in any order.
        let answer: [String]
        let code: Int32
        var testDescription: String { arguments.joined(separator: " ") }

        /// - Parameter line: words between spaces; `·` stands for a space within a word, `''` for an empty word.
        init(_ line: String, _ answer: String..., code: Int32 = 64) {
            arguments = line.split(separator: " ").map { $0 == "''" ? "" : String($0).replacing("·", with: " ") }
            self.answer = answer
            self.code = code
        }
    }

    // MARK: - Words that no command knows

    static let words = [
        Row("enque http://a.example/", "Unknown command 'worker enque'. Did you mean 'worker enqueue'?"),
        Row("runn", "Did you mean 'worker run'?"),
        Row("stauts", "Did you mean 'worker status'?"),
        Row("cache stat", "Unknown command 'worker cache stat'. Did you mean 'worker cache stats'?"),
        Row("blacklist lst", "Did you mean 'worker blacklist list'?"),
        Row("clear", "Did you mean 'worker blacklist clear' or 'worker cache clear'?"),
        Row("nonsense", "Unknown command 'worker nonsense'. The commands are: init, enqueue,"),
        Row("https://a.example/1.jpg", "To put URLs into the queue: worker enqueue URL"),
        Row("db restore", "To go back to a copy: stop all workers", "worker db backup --help"),
        Row("blacklist add http://a.example/", "to list one by hand, insert it into blacklist_entries"),
        Row("version", "worker --version"),
        Row("help run2", "Unknown command 'worker run2'. Did you mean 'worker run'?"),
        Row("help cache stat", "Did you mean 'worker cache stats'?"),
        Row("--concurrency 6", "The option --concurrency belongs to 'worker run'. Write: worker run --concurrency 6"),
        Row("--db x.db status", "The option --db follows a command, such as: worker run --db x.db"),
        Row("status --jsn", "Unknown option '--jsn'. Did you mean '--json'?"),
        Row("status --nonsense", "Unknown option '--nonsense'. See: worker status --help"),
        Row("status --concurrency 3", "Unknown option '--concurrency'. It belongs to 'worker run'"),
        Row("run -c 6", "Unknown option '-c'. Did you mean '--cache'", "'--concurrency'"),
        Row("run 7", "'worker run' takes no argument '7': it works on all jobs.", "worker enqueue URL"),
        Row("run http://a.example/", "'worker run' takes no argument", "Put URLs into the queue first"),
        Row("doctor now", "'worker doctor' takes no arguments; 'now' is one too many."),
        Row(
            "enqueue http://a.example/ --retry",
            "Unknown option '--retry'. It is an option of the job: --option retry-failed"),
        Row("enqueue http://a.example/ --only-nw", "It is an option of the job: --option only-new"),
        Row("run --max-body 10 MB", "Write the value of --max-body as one word: --max-body 10MB"),
        Row("prune --older-than 30 days", "Write the value of --older-than as one word: --older-than 30days"),
        Row("run --cache-max-size 5 GB", "--cache-max-size 5GB"),
        Row("status list.csv", "A job is a number, not 'list.csv'. List the jobs with: worker status"),
        Row("retry one", "A job is a number, not 'one'."),
    ]

    // MARK: - Values

    static let values = [
        Row("run --concurrency -3", "concurrency must be a whole number from 1 to 1000, not '-3'."),
        Row("run --rate -1", "rate must be a number of requests a second, from 0.0001 to 100000, not '-1'."),
        Row("run --concurrency six", "concurrency must be a whole number from 1 to 1000, not 'six'."),
        Row("run --max-age 7", "max-age must be a time such as 15s", "not '7'.", "The units are: ms, s, m, h, d."),
        Row("prune --older-than 30", "older-than must be a time", "The units are: ms, s, m, h, d."),
        Row("retry 1 --since 2", "since must be a time", "The units are: ms, s, m, h, d."),
        Row("run --max-age 7days", "Did you mean 7d? The units are: ms, s, m, h, d."),
        Row("run --total-timeout 5min", "Did you mean 5m?"),
        Row(
            "run --max-body 10XB", "max-body must be a number of bytes such as 64MiB, not '10XB'.",
            "The units are: B, KiB"),
        Row(
            "run --cache-max-size 5", "cache-max-size must be a number of bytes such as 64MiB, not '5'.",
            "The units are:"),
        Row("run --proxy proxy:8080", "proxy must be a URL with its scheme, such as http://proxy:8080."),
        Row("run --user-agent ''", "user-agent must not be empty"),
        Row("run --contact ''", "contact must not be empty"),
        Row("run --allow-addresses localhost", "'localhost' is no range of addresses. Did you mean 'loopback'?"),
        Row("run --allow-addresses privat", "Did you mean 'private'?"),
        Row(
            "enqueue http://a.example/ --priority high", "priority must be a whole number from -100 to 100, not 'high'."
        ),
        Row("enqueue http://a.example/ --name ''", "The name is empty"),
        Row("enqueue http://a.example/ --meta 7", "meta must be a JSON object"),
        Row("limits --rate 0", "not '0'. For no limit, reset the limits with --reset."),
        Row("limits --concurrency many", "concurrency must be a whole number from 1 to 1000, not 'many'."),
        Row("hosts --limit few", "limit must be a whole number from 1 to 1000000, not 'few'."),
        Row("blacklist clear --class 404", "Unknown class '404'. Did you mean 'http-404'?"),
        Row("retry 1 --class timeouts", "Unknown class 'timeouts'. Did you mean 'timeout'?"),
        Row("results 1 --format jsonn", "There is no format 'jsonn'. Did you mean 'json'?"),
        Row(
            "results 1 --columns url,pth", "There is no column 'pth'. Did you mean 'path'? The columns are: job, item,"),
        Row("enqueue http://a.example/ --option retry", "Unknown option 'retry'. Did you mean 'retry-failed'?"),
        Row(
            "enqueue http://a.example/ --option retry-faild",
            "Unknown option 'retry-faild'. Did you mean 'retry-failed'?"),
        Row("enqueue http://a.example/ --option retry_failed", "Did you mean 'retry-failed'?"),
        Row("enqueue http://a.example/ --option max-age", "It needs a value: max-age=TIME."),
        Row("enqueue http://a.example/ --option max-age=7", "max-age must be a time with a unit (ms, s, m, h, d)"),
        Row("enqueue http://a.example/ --option only-new=1", "The option 'only-new' has no value"),
        Row("enqueue http://a.example/ --variant thumb=320*240", "320*240"),
        Row("enqueue http://a.example/ --variant thumb=320x240,80", "did you mean q80?"),
        Row("enqueue http://a.example/ --variant thumb=320x240,q", "a quality is q1 to q100"),
        Row("enqueue http://a.example/ --variant thumb=320x240,quality:80", "such as q80"),
        Row("enqueue http://a.example/ --variant thumb=320x240,gray", "did you mean greyscale?"),
        Row("enqueue http://a.example/ --variant thumb=320x240,wepb", "did you mean webp?"),
        Row("enqueue http://a.example/ --variant thumb=320x240,·webp", "write a variant without spaces"),
        Row("enqueue --query SELECT·1", "--query and --from go together"),
        Row("enqueue -f x --format excel", "There is no format 'excel'. The formats are: text, csv,"),
    ]

    // MARK: - URLs

    static let urls = [
        Row("enqueue example.com/a.jpg", "'example.com/a.jpg' has no scheme. Did you mean https://example.com/a.jpg?"),
        Row("enqueue htps://a.example/1.jpg", "has the unknown scheme 'htps'. Did you mean https?"),
        Row("enqueue s3://bucket/1.jpg", "has the scheme 's3', which is not fetched"),
        Row("enqueue ftp://a.example/1.jpg", "has the scheme 'ftp', which is not fetched"),
        Row("enqueue https:/a.example/1.jpg", "Did you mean https://a.example/1.jpg?"),
        Row("enqueue https://", "has no host"),
        Row("enqueue http://[::1", "a bracket that is not closed"),
        Row("enqueue http://a.example:99999/", "has no valid port"),
        Row("enqueue http://a.example/1.jpg·http://a.example/2.jpg", "There are two URLs"),
        Row("enqueue ''", "The URL is empty."),
        Row("enqueue http://a.example/ --fallback b.jpg", "--fallback: 'b.jpg' is no URL."),
        Row("cache pin nope", "'nope' is no URL. A URL begins with http:// or https://."),
        Row("get 00000.jpg", "'00000.jpg' is no URL."),
        Row("explain nope", "'nope' is no URL."),
        Row("explain http://a.example/unknown", "Nothing is known of http://a.example/unknown", code: 1),
        Row("limits exmple.com --reset", "No limits are set for exmple.com.", code: 1),
        Row("metrics --output /nope/x", "/nope/x can't be written: No such file or directory", code: 73),
        Row("run --db /nope/x.db", "The folder /nope of the database /nope/x.db does not exist.", code: 73),
    ]

    @Test(arguments: words + values + urls) func `A mistake is refused with the right form`(_ row: Row) async throws {
        try await withWorker { w in
            try await w.run("init")
            let refused = try await w.run(row.arguments, expecting: row.code)
            for piece in row.answer { #expect(refused.errors.contains(piece), "\(refused.errors)") }
            #expect(refused.output.isEmpty)
            for word in ["DecodingError", "NSCocoa", "Foundation", "DatabaseError"] {
                #expect(!refused.errors.contains(word), "\(refused.errors)")
            }
            #expect(try await w.value("SELECT count(*) FROM jobs") == "0")
        }
    }

    // MARK: - Files

    struct File: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        /// In place of the path of the file.
        let arguments: String
        let answer: [String]
        var code: Int32 = 64
        var testDescription: String { "\(arguments) \(name)" }

        /// - Parameter line: `FILE` stands for the file's path.
        init(_ line: String, _ name: String, _ text: String, _ answer: String..., code: Int32 = 64) {
            self.init(line, name, bytes: Array(text.utf8), answer, code: code)
        }

        init(_ line: String, _ name: String, bytes: [UInt8], _ answer: [String], code: Int32 = 64) {
            (arguments, self.name, self.bytes, self.answer, self.code) = (line, name, bytes, answer, code)
        }

        /// Runs the command, which has to refuse the file with all pieces of the answer.
        ///
        /// - Returns: what the command said.
        func refused(by w: TestWorker) async throws -> String {
            try w.write(bytes, to: w.place(name))
            let words = arguments.split(separator: " ").map { $0 == "FILE" ? w.place(name) : String($0) }
            let errors = try await w.run(words, expecting: code).errors
            for piece in answer { #expect(errors.contains(piece), "\(errors)") }
            return errors
        }
    }

    static let files = [
        File(
            "run --config FILE", "c1.yaml", "concurency: 3\n",
            "c1.yaml, line 1: unknown setting 'concurency'. Did you mean 'concurrency'?"),
        File("run --config FILE", "c1.yaml", "max_body: 3MiB\n", "Did you mean 'max-body'?"),
        File(
            "run --config FILE", "c2.yaml", "concurrency: six\n",
            "c2.yaml, line 1: concurrency must be a whole number from 1 to 1000"),
        File("run --config FILE", "list.gz", bytes: [0x1F, 0x8B, 8, 0, 0xFF, 0xFE], ["list.gz is not text in UTF-8."]),
        File("run --backup-dir FILE", "list.csv", "url\n", "is a file, and not a folder."),
        File("enqueue -f FILE", "empty.txt", "", "empty.txt has no URLs."),
        File(
            "enqueue -f FILE", "list.txt", "https://a.example/1.jpg\nexample.com/2.jpg\n",
            "line 2: 'example.com/2.jpg' has no scheme."),
        File(
            "enqueue -f FILE", "list.txt", "http://a.example/1.jpg http://a.example/2.jpg\n",
            "line 1: There are two URLs"),
        File(
            "enqueue -f FILE", "list.txt", "htps://a.example/1.jpg\n", "line 1:", "Did you mean https?",
            "nothing was enqueued"),
        File(
            "enqueue -f FILE", "photo.jpg", bytes: [0xFF, 0xD8, 0xFF, 0xE0, 0, 1, 2],
            ["is a JPEG, not a list of URLs.", "worker cache put"]),
        File(
            "enqueue -f FILE", "data.bin", bytes: [1, 2, 0, 0, 7, 0, 0, 0, 9],
            ["data.bin is not text, and no list of URLs."]),
        File("enqueue -f FILE", "list.json", "[\"http://a.example/1.jpg\"]\n", "is one JSON array.", "jq -c '.[]'"),
        File(
            "enqueue -f FILE", "note.xml", "<?xml version=\"1.0\"?><note/>",
            "begins with <note>, which is neither a sitemap"),
        File(
            "enqueue FILE", "urls.txt", "http://a.example/1.jpg\n",
            "urls.txt' is a file here. Did you mean: worker enqueue -f"),
        File(
            "enqueue --manifest FILE", "m.yaml", "urls: http://a.example/1.jpg\n", "m.yaml, line 1: urls must be a list"
        ),
        File(
            "enqueue --manifest FILE", "m.yaml", "urls: [http://a.example/1.jpg]\npriority: high\n",
            "m.yaml, line 2: priority must be a whole number from -100 to 100, not 'high'."),
        File(
            "enqueue --manifest FILE", "m.yaml", "urls: [http://a.example/1.jpg]\nvarients: a=1x1\n",
            "m.yaml, line 2: unknown key 'varients'. Did you mean 'variants'?"),
        File(
            "enqueue --manifest FILE", "m.yaml", "url: [http://a.example/1.jpg]\n",
            "unknown key 'url'. Did you mean 'urls'?"),
        File(
            "enqueue --manifest FILE", "list.csv", "url,sku\nhttp://a.example/1.jpg,7\n",
            "can't be used: it has to be keys with values", "worker enqueue -f"),
    ]

    @Test(arguments: files) func `An invalid file is refused before any job is added`(
        _ file: File,
    ) async throws {
        try await withWorker { w in
            try await w.run("init")
            let errors = try await file.refused(by: w)
            #expect(!errors.contains("DecodingError") && !errors.contains("YamlError"))
            #expect(try await w.value("SELECT count(*) FROM jobs") == "0")
        }
    }

    // MARK: - Warnings, and words of success

    @Test func `A questionable value is used with a warning`() async throws {
        try await withWorker { w in
            let spaced = try await w.run("enqueue", "http://a.example/a b.jpg")
            #expect(spaced.errors.contains("warning: 'http://a.example/a b.jpg' has a space, which is sent as %20."))
            try await w.run("cancel", "--all")
            let wide = try await w.run("run", "--drain", "--per-host", "50", "--concurrency", "2")
            #expect(wide.errors.contains("warning: per-host is 50, and concurrency allows 2"))
        }
    }

    @Test func `Commands about pins, retries and ended jobs answer in sentences`() async throws {
        try await withWorker { w in
            let job = try await w.enqueue(w.url("/nothing"))
            try await w.run(["run", "--drain", "--quiet"] + TestWorker.quick, expecting: 2)
            #expect(try await w.run("cache", "pin", w.url("/1.png")).errors == "1 pinned\n")
            #expect(try await w.run("cache", "unpin", w.url("/1.png")).errors == "1 unpinned\n")
            #expect(
                try await w.run("cancel", job, expecting: 64).errors.contains("Job \(job) is already finished."))
            #expect(try await w.run("retry", job).errors.contains("1 item goes back into the queue."))
            #expect(
                try await w.run("limits").output
                    == "No limits are set: workers use those with which they were started.\n")
        }
    }

    @Test func `A folder in the place of the database leaves no lock file behind`() async throws {
        try await withWorker { w in
            let folder = w.place("adir")
            mkdir(folder, 0o700)
            let refused = try await w.run("run", "--db", folder, expecting: 73)
            #expect(refused.errors.contains("is a folder. Name a file in it: \(folder)/worker.db"))
            #expect(fileNames(in: w.scratch).filter { $0.hasPrefix("adir") } == ["adir"])
        }
    }

    // MARK: - What removes something

    @Test(arguments: ["prune --older-than 0", "cache clear", "blacklist clear", "limits --reset", "db rebuild"])
    func `A command that removes data needs --yes, and --dry-run changes nothing`(_ line: String) async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), w.url("/nothing"))
            try await w.run(["run", "--drain", "--quiet"] + TestWorker.quick, expecting: 2)
            try await w.run("limits", "--rate", "3")
            let words = line.split(separator: " ").map(String.init)
            let state =
                "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM blacklist), (SELECT count(*) FROM limits), (SELECT count(*) FROM entries)"
            let before = try await w.value(state)
            let refused = try await w.run(words, expecting: 64)
            #expect(
                refused.errors.contains(
                    "There is no terminal to ask on: add --yes to do it, or --dry-run to only show it."),
                "\(refused.errors)")
            let shown = try await w.run(words + ["--dry-run"])
            #expect(shown.output.hasSuffix("Nothing was changed.\n"))
            #expect(try await w.value(state) == before)
            try await w.run(words + ["--yes"])
            if words.first == "db" {
                // The rebuild keeps the old file aside.
                for name in fileNames(in: w.home) where name.contains(".broken-") { unlink("\(w.home)/\(name)") }
            } else {
                #expect(try await w.value(state) != before)
            }
        }
    }

    // MARK: - Results

    @Test func `Results are printed as JSON, by column, or for failures only`() async throws {
        try await withWorker { w in
            let job = try await w.enqueue(w.url("/1.png"), w.url("/nothing"), "--meta", #"{"sku":7}"#)
            try await w.run(["run", "--drain", "--quiet"] + TestWorker.quick, expecting: 2)
            struct Result: Decodable {
                let url: String
                let state: String?
            }
            for arguments in [["--json"], ["--format", "json"]] {
                #expect(try await w.run(["results", job] + arguments).json([Result].self).count == 2)
            }
            #expect(
                try await w.run("results", job, "--failed", "--json").json([Result].self).map(\.url) == [
                    w.url("/nothing")
                ])
            #expect(
                try await w.run("results", job, "--failed", "--format", "csv", "--columns", "class,meta,url").lines
                    == ["class,meta,url", "http-404,\"{\"\"sku\"\":7}\",\(w.url("/nothing"))"])
            let lines = try await w.run("results", job, "--format", "jsonl", "--columns", "meta,url").lines
            #expect(lines.first == #"{"meta":{"sku":7},"url":"\#(w.url("/1.png"))"}"#)
            let table = try await w.run("results", job, "--columns", "state,url").lines
            #expect(table.first?.split(separator: " ") == ["state", "url"])
            #expect(
                try await w.run("results", job, "--failed", "--json", "--format", "csv", expecting: 64).output == "")
        }
    }
}
