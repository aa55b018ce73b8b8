import Glibc
import SystemPackage
import TestSupport
import Testing

/// Secrets in URLs and headers, and the places that must not show them.
@Suite("Credentials in URLs", .timeLimit(.minutes(15)))
struct CredentialTests {
    @Test func `Errors about a list's address or an invalid URL show no secrets`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let picture = w.place("1.png")
            try w.write(Pictures.png(1), to: picture)
            let list = try w.file(
                "list",
                "http://a.example:99999/?sig=geheim\nftp://h/?token=geheim\nhttp://[::1/?sig=geheim\nhtp://a/?key=geheim\n"
            )
            for arguments in [
                ["enqueue", "-f", list], ["enqueue", "-f", list, "--skip-invalid"],
                ["enqueue", "-f", w.url("/nothing?token=geheim"), "--allow-addresses", "loopback"],
                ["cache", "put", "cdn.example/a?sig=geheim", picture],
            ] {
                let refused = try await w.run(arguments, expecting: nil)
                #expect(refused.exit != .code(0) && !refused.errors.isEmpty && !refused.errors.contains("geheim"))
            }
        }
    }

    @Test func `Credentials of a URL are shown only with --show-credentials`() async throws {
        try await withWorker({ request in
            request.header("Authorization") == nil ? .status(401) : Pictures.reply(request)
        }) { w in
            let address = w.url("").replacing("http://", with: "")
            let good = "http://me:s3cret@\(address)/1.png"
            let gone = "http://me:s3cret@\(address)/nothing"
            try await w.enqueue([good, gone], "--variant", "it=8x8")
            let run = try await w.run(["run", "--drain"] + TestWorker.quick, expecting: 2)
            #expect(try await w.counts("1") == "1|0|1|0|0")
            try await w.run("cache", "pin", good)
            var shown = [run.output, run.errors]
            for url in [good, gone] {
                for arguments in [["explain", url], ["explain", url, "--json"], ["get", url, "--variant", "other"]] {
                    let said = try await w.run(arguments, expecting: nil)
                    shown += [said.output, said.errors]
                }
            }
            for arguments in [
                ["results", "1"], ["results", "1", "--format", "csv"], ["results", "1", "--format", "jsonl"],
                ["blacklist", "list"], ["blacklist", "list", "--json"], ["cache", "pin"], ["status"], ["hosts"],
                ["status", "1", "--json"],
            ] {
                let said = try await w.run(arguments)
                shown += [said.output, said.errors]
            }
            #expect(shown.filter { $0.contains("s3cret") } == [])
            #expect(try await w.run("results", "1").output.contains("http://\(address)/1.png"))
            for arguments in [["results", "1"], ["blacklist", "list"], ["cache", "pin"]] {
                #expect(try await w.run(arguments + ["--show-credentials"]).output.contains("me:s3cret@"))
            }
        }
    }

    @Test func `Signatures in queries are hidden on terminals, and results for programs have them`() async throws {
        try await withWorker(Pictures.reply) { w in
            let (good, gone) = (w.url("/1.png?w=3&X-Amz-Signature=s3cret"), w.url("/no?ticket=s3cret&sig=s3cret"))
            try await w.enqueue(good, gone)
            let log = try await w.run(
                ["run", "--drain", "--log-level", "debug", "--redact", "Ticket"] + TestWorker.quick, expecting: 2)
            // The log has a line for each item that ends.
            #expect(log.errors.contains("X-Amz-Signature=***") && log.errors.contains("sig=***"), "\(log.errors)")
            var shown = [log.output, log.errors]
            if ChildProcess.find("script") != nil {
                let results = "\(TestWorker.binary) results 1 --redact Ticket"
                let terminal = try await w.run(
                    "-qec", results, "/dev/null", program: "script", environment: ["TERM": "xterm"])
                #expect(terminal.output.contains("X-Amz-Signature=***"), "\(terminal.output)")
                shown.append(terminal.output)
            }
            for arguments in [
                ["explain", good], ["explain", good, "--json"], ["explain", gone], ["blacklist", "list"], ["status"],
                ["get", gone], ["hosts"],
            ] {
                let said = try await w.run(arguments + ["--redact", "Ticket"], expecting: nil)
                shown += [said.output, said.errors]
            }
            #expect(shown.filter { $0.contains("s3cret") } == [])
            #expect(shown.contains { $0.contains("/1.png?w=3&X-Amz-Signature=***") })
            #expect(try await w.run("explain", good, "--show-credentials").output.contains("s3cret"))
            #expect(try await w.run("results", "1", "--format", "csv").output.contains("s3cret"))
        }
    }

    @Test func `Headers of a job are read from a file`() async throws {
        try await withWorker({ request in
            request.header("X-Key") == "s3cret" && request.header("X-All") == "1: 2"
                ? Pictures.reply(request) : .status(403)
        }) { w in
            let file = FilePath(w.home).appending("headers")
            let descriptor = try FileDescriptor.open(
                file, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
            _ = try descriptor.closeAfter {
                try descriptor.writeAll(Array("# of this job\nX-Key: s3cret\n\nX-All: 1: 2\n".utf8))
            }
            try await w.run("enqueue", w.url("/1.png"), "--header", "@\(file)")
            try await w.run(["run", "--drain"] + TestWorker.quick)
            #expect(try await w.counts("1") == "1|0|0|0|0")
            let missing = try await w.run(["enqueue", w.url("/1.png"), "--header", "@/nowhere"], expecting: 64)
            #expect(missing.errors.contains("/nowhere"))
            let wrong = try await w.run(["enqueue", w.url("/1.png"), "--header", "s3cret"], expecting: 64)
            #expect(!wrong.errors.contains("not 's3cret'"))
            unlink(file.string)
        }
    }

    enum HeaderPlace: String, CaseIterable, Sendable {
        case file, environment, configuration, fileOfConfiguration
    }

    /// Headers of all requests of a worker, from each place that is not shown in the list of processes.
    @Test(arguments: HeaderPlace.allCases)
    func `A worker's headers are sent to every host, and are in no command line`(_ place: HeaderPlace) async throws {
        let lines = "X-Key: s3cret\nX-All: 1: 2\n"
        try await withWorker({ request in
            request.header("X-Key") == "s3cret" && request.header("X-All") == "1: 2"
                ? Pictures.reply(request) : .status(403)
        }) { w in
            let file = try w.file("headers", "# of all jobs\n\(lines)")
            var arguments: [String] = []
            var environment: [String: String] = [:]
            switch place {
            case .file: arguments = ["--header", "@\(file)"]
            case .environment: environment = ["WORKER_HEADER": lines]
            case .configuration:
                let list = lines.split(separator: "\n").map { "'\($0)'" }.joined(separator: ", ")
                arguments = ["--config", try w.file("worker.yaml", "header: [\(list)]\n")]
            case .fileOfConfiguration:
                arguments = ["--config", try w.file("worker.yaml", "header: '@\(file)'\n")]
            }
            let worker = try w.start(TestWorker.quick + arguments, environment: environment)
            try await w.eventually("there is a database") { access(w.database, F_OK) == 0 }
            // Two names of the origin, and a variant for which a helper is needed.
            let other = w.url("/2.png").replacing("127.0.0.1", with: "localhost")
            let job = try await w.enqueue(w.url("/1.png"), other, "--variant", "it=8x8,png")
            try await w.untilEnded(job)
            #expect(try await w.counts(job) == "2|0|0|0|0")
            let processes = w.processes
            #expect(processes.contains(worker.pid) && processes.count > 1)
            for process in processes {
                let words = ProcessTable.contents(of: "/proc/\(process)/cmdline") ?? []
                #expect(!words.isEmpty && words.firstRange(of: Array("s3cret".utf8)) == nil)
                // Decoders of foreign pictures have no use for secrets.
                guard process != worker.pid else { continue }
                let variables = ProcessTable.contents(of: "/proc/\(process)/environ") ?? []
                #expect(variables.firstRange(of: Array("s3cret".utf8)) == nil)
            }
            #expect(!(try w.errors(of: worker)).contains("s3cret"))
        }
    }
}
