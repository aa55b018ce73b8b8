import Glibc
import SystemPackage
import TestSupport
import Testing

/// `worker dashboard` and `worker run --dashboard`, as browsers, scripts and attackers meet them.
@Suite(.timeLimit(.minutes(15))) struct DashboardTests {
    private static let token = "a-token+of-some-length/0123="

    /// Starts a dashboard at a free port; its address.
    private func dashboard(_ w: TestWorker, _ arguments: String..., command: String = "dashboard") async throws
        -> String
    {
        let address =
            command == "run" ? ["--dashboard", "127.0.0.1:0"] + TestWorker.quick : ["--listen", "127.0.0.1:0"]
        let child = try w.start(address + arguments, command: command)
        var found: String?
        try await w.eventually("the dashboard listens") {
            guard child.exit == nil else { throw TestWorker.NeverHappened(description: try w.errors(of: child)) }
            found = try w.errors(of: child).firstMatch(of: /http:\/\/[0-9.]+:[0-9]+/).map { String($0.output) }
            return found != nil
        }
        return try #require(found)
    }

    /// The status and the body of an answer.
    private func ask(_ w: TestWorker, _ url: String, _ arguments: String...) async throws -> (
        status: String, body: String
    ) {
        let answer = try await w.run(["-s", "-m", "20", "-w", "\n%{http_code}", url] + arguments, program: "curl")
        let lines = answer.output.split(separator: "\n", omittingEmptySubsequences: false)
        return (String(lines.last ?? ""), lines.dropLast().joined(separator: "\n"))
    }

    private func secret(_ w: TestWorker, _ base: String, _ arguments: String...) async throws -> String {
        let session = try await w.run(["-s", "\(base)/api/session"] + arguments, program: "curl")
        return try #require(session.output.firstMatch(of: /"csrf":"([0-9a-f]{64})"/).map { String($0.output.1) })
    }

    @Test(
        .enabled(if: Chromium.program != nil, "\(Chromium.missing)"),
        .enabled(
            if: access("/usr/lib/python3/dist-packages/websocket", R_OK) == 0, "python3-websocket is not installed."))
    func thePagesWorkInABrowser() async throws {
        try await withWorker { w in
            let token = try w.file("token", Self.token + "\n")
            let pictures = (0..<6).map { w.url("/\($0).png") }
            try await w.run(["enqueue"] + pictures + [w.url("/missing"), w.url("/gone"), "--name", "shop"])
            try await w.drain(expecting: 2)
            try await w.enqueue(
                w.url("/7.png"), "--name",
                "<b class=\"evil\">x</b><script>window.evil=1</script><img src=x onerror=\"window.evil=1\">")
            let base = try await dashboard(w, "--dashboard-token-file", token)
            var arguments = ["\(base)", "--token", Self.token]
            let axe = Guide.root.appending(".build/axe/axe.min.js").string
            if access(axe, R_OK) == 0 {
                arguments += ["--axe", axe]
            } else {
                withKnownIssue("axe-core is not there, so nothing judges how the dashboard is used without a mouse.") {
                    Issue.record("scripts/bootstrap couldn't download it")
                }
            }
            let seen = try await w.run(
                [Guide.root.appending("Tests/Browser/dashboard.py").string] + arguments, program: "/usr/bin/python3",
                expecting: nil, within: .seconds(300))
            #expect(seen.exit == .code(0), "\(seen.output)\(seen.errors)")
        }
    }

    @Test func aRequestWithoutTheTokenIsRefused() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.enqueue(w.url("/1.png"), "--name", "confidential")
            let token = try w.file("token", Self.token)
            let base = try await dashboard(w, "--dashboard-token-file", token)
            for path in [
                "/api/state", "/api/stream", "/api/jobs/1", "/api/jobs/1/items", "/metrics", "/api/items/1/picture",
            ] {
                let (status, body) = try await ask(w, base + path)
                #expect(status == "401" && !body.contains("confidential"), "\(path): \(status)")
            }
            #expect(try await ask(w, base + "/").body.contains("name=\"token\""))
            // What a balancer asks needs none, and tells nothing.
            #expect(try await ask(w, base + "/healthz").body.hasPrefix("ok"))
            #expect(try await ask(w, base + "/readyz").status == "200")
            #expect(
                try await ask(w, base + "/metrics", "-H", "Authorization: Bearer \(Self.token)").body.contains(
                    "worker_items_queued 1"))
            #expect(try await ask(w, base + "/metrics", "-H", "Authorization: Bearer wrong").status == "401")
            #expect(try await ask(w, base + "/login", "-d", "token=wrong").status == "401")
            let jar = w.place("jar")
            #expect(
                try await ask(w, base + "/login", "-c", jar, "--data-urlencode", "token=\(Self.token)").status == "303")
            let cookie = String(decoding: try w.bytes(of: jar), as: UTF8.self)
            #expect(cookie.contains("#HttpOnly_127.0.0.1") && cookie.contains("worker_session"))
            let login = try await w.run(
                ["-s", "-i", base + "/login", "--data-urlencode", "token=\(Self.token)"], program: "curl")
            #expect(login.output.contains("SameSite=Strict"), "\(login.output)")
            #expect(try await ask(w, base + "/api/state", "-b", jar).body.contains("confidential"))
            let csrf = try await secret(w, base, "-b", jar)
            #expect(
                try await ask(w, base + "/logout", "-b", jar, "-X", "POST", "-H", "X-CSRF-Token: \(csrf)").status
                    == "303")
            #expect(try await ask(w, base + "/api/state", "-b", jar).status == "401")
            try await w.stopAll()
        }
    }

    @Test func aDashboardWhoseDatabaseIsGoneIsNotReady() async throws {
        try await withWorker { w in
            try await w.run("init")
            let base = try await dashboard(w)
            #expect(try await ask(w, base + "/readyz").status == "200")
            for file in [w.database, w.database + "-wal", w.database + "-shm"] { rename(file, file + ".away") }
            try await w.eventually("it isn't ready") { try await ask(w, base + "/readyz").status == "503" }
            #expect(try await ask(w, base + "/readyz").body.contains(w.database))
            #expect(try await ask(w, base + "/healthz").status == "200")
            try await w.stopAll()
        }
    }

    /// Pages of other sites, in the browser of a person whose machine runs the dashboard without a token.
    @Test func otherSitesCanNeitherReadNorChangeJobs() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.enqueue(w.url("/1.png"))
            let base = try await dashboard(w)
            let csrf = try await secret(w, base)
            let cancel = base + "/api/jobs/1/cancel"
            // A name that was rebound to this machine.
            #expect(try await ask(w, base + "/api/state", "-H", "Host: evil.example").status == "421")
            #expect(try await ask(w, base + "/api/state", "-H", "Host: 127.0.0.1.evil.example:80").status == "421")
            #expect(try await ask(w, base + "/api/state", "-H", "Host: localhost:1").status == "200")
            for headers in [
                [], ["-H", "X-CSRF-Token: wrong"],
                ["-H", "X-CSRF-Token: \(csrf)", "-H", "Origin: https://evil.example"],
                ["-H", "X-CSRF-Token: \(csrf)", "-H", "Sec-Fetch-Site: cross-site"],
            ] {
                let answer = try await w.run(
                    ["-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "-d", "{}", cancel] + headers,
                    program: "curl")
                #expect(answer.output == "403", "\(headers)")
            }
            #expect(try await w.sql("SELECT state FROM jobs").line == "queued")
            #expect(
                try await ask(w, cancel, "-X", "POST", "-H", "X-CSRF-Token: \(csrf)", "-H", "Origin: \(base)").status
                    == "200")
            #expect(try await w.sql("SELECT state FROM jobs").line == "cancelled")
            let headers = try await w.run("-s", "-D", "-", "-o", "/dev/null", base + "/", program: "curl").output
                .lowercased()
            for header in [
                "content-security-policy: default-src 'none'; script-src 'self'", "x-content-type-options: nosniff",
                "referrer-policy: same-origin", "cache-control: no-store",
            ] {
                #expect(headers.contains(header), "\(header)")
            }
            try await w.stopAll()
        }
    }

    /// A page shows a URL without its secrets, and its buttons name the URL all the same.
    @Test func `Buttons work on URLs whose secrets the pages hide`() async throws {
        try await withWorker { w in
            let url = w.url("/missing?token=geheim")
            try await w.enqueue(url, w.url("/missing?token=other"))
            try await w.drain(expecting: 2)
            let base = try await dashboard(w)
            let csrf = try await secret(w, base)
            func act(_ path: String, _ body: String) async throws -> String {
                try await ask(w, base + path, "-X", "POST", "-H", "X-CSRF-Token: \(csrf)", "-d", body).body
            }
            func handles(_ path: String) async throws -> [String] {
                let page = try await ask(w, base + path).body
                #expect(!page.contains("geheim"))
                return page.matches(of: /"handle":"([0-9a-f]+)"/).map { String($0.1) }
            }
            #expect(try await handles("/api/blacklist?class=http-410").isEmpty)
            #expect(try await handles("/api/blacklist?host=elsewhere.example").isEmpty)
            #expect(try await handles("/api/blacklist?host=127.0.0.1&class=http-404").count == 2)
            // Without a class of this name nothing is shown, and nothing is taken off.
            #expect(try await ask(w, base + "/api/blacklist?class=nonsense").body.contains("no class"))
            for handle in try await handles("/api/blacklist") {
                #expect(try await act("/api/blacklist/remove", #"{"handle":"\#(handle)"}"#).contains("1 URL is off"))
            }
            #expect(try await w.value("SELECT count(*) FROM blacklist") == "0")
            // An item's history has a handle of its own, and says whether the item's files are kept.
            let kept = try #require(try await handles("/api/items/1").first)
            #expect(try await ask(w, base + "/api/items/1").body.contains(#""is_pinned":false"#))
            #expect(try await act("/api/pin", #"{"handle":"\#(kept)","pinned":true}"#).contains("stay in the cache"))
            #expect(try await ask(w, base + "/api/items/1").body.contains(#""is_pinned":true"#))
            let pinned = try await handles("/api/cache")
            #expect(pinned.count == 1)
            for handle in pinned {
                #expect(
                    try await act("/api/pin", #"{"handle":"\#(handle)","pinned":false}"#).contains("may be evicted"))
            }
            #expect(try await w.value("SELECT count(*) FROM pins") == "0")
            #expect(try await act("/api/pin", #"{"handle":"abc","pinned":true}"#).contains("out of date"))
            try await w.stopAll()
        }
    }

    @Test(arguments: [
        ("/api/jobs/1/retry", #"{"class":"http-404"}"#, "200", "1 item goes back"),
        ("/api/jobs/1/retry", #"{"class":"nonsense"}"#, "400", "no class"),
        ("/api/jobs/99/pause", "{}", "404", "There is no job 99"), ("/api/jobs/x/pause", "{}", "404", "no job"),
        ("/api/jobs/1/explode", "{}", "404", "no such action"), ("/api/enqueue", "[", "400", "not JSON"),
        ("/api/enqueue", #"{"urls":"htp://a.example/1.jpg"}"#, "400", "Did you mean http?"),
        ("/api/enqueue", #"{"urls":"https://a.example/1.jpg","variants":"t=10x10,wepb"}"#, "400", "webp"),
        ("/api/enqueue", #"{"urls":"https://a.example/1.jpg","priority":1000}"#, "400", "-100 to 100"),
        (
            "/api/enqueue", #"{"urls":"https://a.example/1.jpg\nhttps://a.example/2.jpg","variants":"t=10x10,webp"}"#,
            "200", "Job 2 was added"
        ),
        ("/api/limits", #"{"host":"a.example","per_host":2}"#, "200", "a.example"),
        ("/api/limits", #"{"host":"a.example","per_host":-2}"#, "409", "per_host"),
        ("/api/limits", #"{"host":"http://a.example/"}"#, "400", "host"),
        ("/api/blacklist/remove", #"{"class":"http-404"}"#, "200", "1 URL is off"),
        ("/api/blacklist/remove", #"{"class":"http-404","host":"127.0.0.1"}"#, "200", "1 URL is off"),
        ("/api/blacklist/remove", #"{"class":"http-404","host":"a.example"}"#, "200", "0 URLs are off"),
        ("/api/blacklist/remove", #"{"host":null,"class":null}"#, "400", "Name a url, a host or a class"),
        ("/api/pin", #"{"url":"https://a.example/1.jpg","pinned":true}"#, "200", "stay in the cache"),
        ("/api/schedules/none/run", "{}", "400", "no schedule"), ("/api/pause-all", "{}", "200", "paused"),
    ])
    func everyActionAnswersWithItsEffect(_ path: String, _ body: String, _ status: String, _ words: String) async throws
    {
        try await withWorker { w in
            try await w.enqueue(w.url("/missing"))
            try await w.drain(expecting: 2)
            let base = try await dashboard(w)
            let csrf = try await secret(w, base)
            let answer = try await ask(w, base + path, "-X", "POST", "-H", "X-CSRF-Token: \(csrf)", "-d", body)
            #expect(answer.status == status && answer.body.contains(words), "\(answer)")
            try await w.stopAll()
        }
    }

    /// Each answer looks at a bounded number of items and names the next; the page asks again until it is full.
    @Test func aLongJobsItemsAreFilteredPageByPage() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.sql(
                """
                WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
                INSERT INTO jobs (name, urls) SELECT 'many', json_group_array('http://127.0.0.1:9/' || i || '.jpg') FROM n
                """)
            let base = try await dashboard(w)
            func page(_ query: String) async throws -> String {
                try await ask(w, base + "/api/jobs/1/items?" + query).body
            }
            let first = try await page("limit=3")
            #expect(first.contains("/1.jpg") && first.contains("/3.jpg") && first.contains(#""next":3"#))
            #expect(try await page("limit=2&order=desc").contains("/300000.jpg"))
            // What is far away comes after empty pages, each of which says where to go on.
            let empty = try await page("text=/299999.jpg")
            #expect(empty.contains(#""items":[]"#) && empty.contains(#""next":50000"#))
            #expect(try await page("text=/299999.jpg&after=250000").contains("/299999.jpg"))
            #expect(try await page("state=failed&after=299000") == #"{"items":[]}"#)
            #expect(try await ask(w, base + "/api/jobs/1/items?state=broken").status == "400")
            // Odd numbers are no matter.
            for query in [
                "limit=-5", "limit=99999999999999999999", "after=x", "after=-9223372036854775808", "order=up",
            ] {
                #expect(try await ask(w, base + "/api/jobs/1/items?" + query).status == "200", "\(query)")
            }
            #expect(try await ask(w, base + "/api/jobs/9223372036854775808").status == "404")
            #expect(try await ask(w, base + "/api/jobs/1/items?class=nonsense").status == "400")
            try await w.stopAll()
        }
    }

    @Test func aRunningWorkerServesTheDashboard() async throws {
        try await withWorker { w in
            let base = try await dashboard(w, command: "run")
            try await w.enqueue(w.url("/1.png"), w.url("/2.png"), w.url("/missing"), "--variant", "t=8x8,png")
            try await w.eventually("the counters are written") {
                try await ask(w, base + "/metrics").body.contains(
                    "worker_items_ended_total{state=\"done\",class=\"\"} 2")
            }
            let metrics = try await ask(w, base + "/metrics").body
            for line in [
                #"worker_items_ended_total{state="failed",class="http-404"} 1"#,
                #"worker_requests_total{status="2xx"} 2"#,
                #"worker_requests_total{status="4xx"} 1"#, #"worker_transforms_total{format="png"} 2"#,
                "worker_fetch_seconds_count 3", "worker_transform_seconds_count 2", "worker_publish_seconds_count 3",
                "worker_workers 1",
            ] {
                #expect(metrics.contains("\n\(line)\n"), "\(line)")
            }
            #expect(try await ask(w, base + "/api/charts").body.contains(#""http-404":1"#))
            let picture = try await w.run(
                "-s", "-o", "/dev/null", "-w", "%{http_code} %{content_type}", base + "/api/items/1/picture",
                program: "curl")
            #expect(picture.line == "200 image/png")
            #expect(try await ask(w, base + "/api/items/3/picture").status == "404")
            #expect(try await ask(w, base + "/api/items/3").body.contains(#""class":"http-404""#))
            // The live state comes at once.
            let stream = try await w.run("-s", "-m", "3", base + "/api/stream", program: "curl", expecting: 28)
            #expect(stream.output.hasPrefix("data: {") && stream.output.contains(#""job":1"#))
            try await w.eventually("the helpers' counts are written") {
                let state = try await w.run("-s", "-m", "3", base + "/api/stream", program: "curl", expecting: 28)
                return state.output.contains(
                    /"helpers":{"busy":0,"died":0,"running":[1-9][0-9]*,"started":[1-9][0-9]*,"waiting":0}/)
            }
            // A request for its headers opens no stream: there may be 64 of those.
            _ = try await w.run("-s", "-m", "20", "-I", base + "/api/stream?[1-70]", program: "curl")
            let again = try await w.run("-s", "-m", "3", base + "/api/stream", program: "curl", expecting: 28)
            #expect(again.output.hasPrefix("data: {"))
            try await w.stopAll()
        }
    }

    @Test(arguments: [
        (["--listen", "0.0.0.0:0"], "needs a token"), (["--listen", "nonsense"], "127.0.0.1:8080"),
        (["--listen", "example.com:80"], "no IP address"), (["--listen", "127.0.0.1:99999"], "no address"),
        (["--dashboard-token-file", "/nonexistent"], "can't be read"),
    ])
    func anUnusableAddressOfTheDashboardIsRefused(_ arguments: [String], _ words: String) async throws {
        try await withWorker { w in
            try await w.run("init")
            let refused = try await w.run(["dashboard"] + arguments, expecting: 64)
            #expect(refused.errors.contains(words), "\(refused.errors)")
            // A worker is told before it begins.
            let worker = ["run", "--drain"] + arguments.map { $0 == "--listen" ? "--dashboard" : $0 }
            let flag = arguments.contains("--listen") ? [] : ["--dashboard", "127.0.0.1:0"]
            let ended = try await w.run(worker + flag, expecting: 64)
            #expect(ended.errors.contains(words) && ended.output.isEmpty, "\(ended.errors)")
        }
    }

    @Test func aPortInUseIsRefused() async throws {
        try await withWorker { w in
            try await w.run("init")
            let base = try await dashboard(w)
            let address = base.replacing("http://", with: "")
            let refused = try await w.run("dashboard", "--listen", address, expecting: 69)
            #expect(refused.errors.contains("the port is in use"), "\(refused.errors)")
            let worker = try await w.run(["run", "--drain", "--dashboard", address] + TestWorker.quick, expecting: 69)
            #expect(worker.errors.contains("the port is in use"), "\(worker.errors)")
            try await w.stopAll()
        }
    }
}
