import Glibc
import SystemPackage
import TestSupport
import Testing

/// The output of `worker metrics` and the alert rules, checked by Prometheus' own tool.
@Suite(.timeLimit(.minutes(15))) struct MonitoringTests {
    private static let folder = Guide.root.appending("packaging/monitoring")

    @Test(.enabled(if: ChildProcess.find("promtool") != nil, "promtool is not installed."))
    func `promtool accepts the metrics`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"), w.url("/missing"))
            try await w.drain(expecting: 2)
            // A name that has to be escaped.
            let manifest = try w.file("m.yaml", "urls: ['\(w.url("/1.png"))']\nschedule: '@hourly'\n")
            try await w.run("schedule", "add", manifest, "--name", #"the "nightly" one\"#)
            try await w.run("schedule", "run", #"the "nightly" one\"#)
            try await w.enqueue(w.url("/2.png"))
            let metrics = try await w.run("metrics").output
            let checked = try await w.run(
                "-c", "promtool check metrics < \(w.file("m.prom", metrics))", program: "bash", expecting: nil)
            #expect(checked.exit == .code(0), "\(checked.output)\(checked.errors)")
            #expect(checked.errors.isEmpty && checked.output.isEmpty, "\(checked.output)\(checked.errors)")
            for line in [
                "worker_items_queued 2", "worker_items_active 0", #"worker_jobs{state="queued"} 2"#,
                "worker_blacklist_entries 1",
                #"worker_schedule_last_run_failed{schedule="the \"nightly\" one\\"} 0"#,
            ] {
                #expect(metrics.contains("\n\(line)\n"), "\(line)")
            }
            let names = metrics.split(separator: "\n").filter { !$0.hasPrefix("#") }.map {
                $0.prefix { $0 != " " && $0 != "{" }
            }
            #expect(names.contains("worker_cache_disk_free_bytes") && names.contains("worker_queue_oldest_age_seconds"))
        }
    }

    @Test func `Status and metrics report a reader that blocks checkpoints, with its age`()
        async throws
    {
        try await withWorker { w in
            try await w.run("init")
            let program = """
                import sqlite3, sys, time
                db = sqlite3.connect(sys.argv[1], isolation_level=None)
                db.execute("BEGIN"); db.execute("SELECT count(*) FROM jobs").fetchone()
                print("reading", flush=True); time.sleep(600)
                """
            let worker = try w.start()
            let reader = try RunningProgram(
                "/usr/bin/python3", ["-c", program, w.database], files: ChildProcess.Files(output: w.place("reader")),
                environment: [:])
            defer { reader.send(SIGKILL) }
            try await w.eventually("it reads") { (try? w.text(of: w.place("reader"))) == "reading\n" }
            // More than the log keeps before a checkpoint.
            try await w.sql(
                "CREATE TABLE ballast (b BLOB); INSERT INTO ballast VALUES (randomblob(9000000)); DROP TABLE ballast;")
            try await w.eventually("status tells", within: .seconds(40)) {
                try await w.run("status").errors.contains("has kept a read transaction open for")
            }
            let said = try await w.run("status").errors
            #expect(said.contains("process \(reader.pid) (python3"), "\(said)")
            func age() async throws -> Double {
                let line = try await w.run("metrics").lines.first {
                    $0.hasPrefix("worker_database_reader_age_seconds ")
                }
                return line.flatMap { Double($0.drop { $0 != " " }.dropFirst()) } ?? 0
            }
            #expect(try await age() >= 5)
            reader.send(SIGKILL)
            _ = try await reader.wait()
            try await w.eventually("it is over", within: .seconds(40)) { try await age() == 0 }
            worker.send(SIGTERM)
            _ = try await worker.wait()
        }
    }

    @Test(.enabled(if: ChildProcess.find("promtool") != nil, "promtool is not installed."))
    func `The alert rules pass their tests`() async throws {
        try await withWorker { w in
            for arguments in [
                ["check", "rules", Self.folder.appending("alerts.yaml").string],
                ["test", "rules", Self.folder.appending("alerts-test.yaml").string],
            ] {
                try await w.run(arguments, program: "promtool")
            }
        }
    }

    /// The metrics in the alert rules and in Grafana's dashboard are those that `worker metrics` prints.
    @Test(arguments: ["alerts.yaml", "grafana.json"])
    func `Alert rules and Grafana's dashboard use only existing metrics`(_ name: String) async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.run("schedule", "add", w.file("m.yaml", "urls: ['http://a.example/']\nschedule: '@hourly'\n"))
            try await w.run("schedule", "run", "m")
            let metrics = try await w.run("metrics").output
            let text = String(decoding: try w.bytes(of: Self.folder.appending(name).string), as: UTF8.self)
            let asked = Set(text.matches(of: /worker_[a-z_]+/).map { String($0.output) })
            #expect(asked.count > 5)
            for metric in asked {
                let name = metric.replacing(/_(bucket|sum|count)$/, with: "")
                #expect(
                    metrics.contains("# TYPE \(metric) ") || metrics.contains("# TYPE \(name) histogram"), "\(metric)")
            }
        }
    }
}
