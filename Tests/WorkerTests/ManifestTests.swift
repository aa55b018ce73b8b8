import Glibc
import SystemPackage
import TestSupport
import Testing

/// The manifests for containers: their commands and variables, with the addresses and keys of servers that are here.
@Suite(
    "Manifests for containers",
    .enabled(if: PostgresServer.isAvailable, Comment(rawValue: PostgresServer.missing)),
    .enabled(if: S3Server.isAvailable, Comment(rawValue: S3Server.missing)), .timeLimit(.minutes(15)))
struct ManifestTests {
    private struct Manifest {
        /// Those of the worker and the libraries that it uses.
        var variables: [String: String] = [:]
        var commands: [[String]] = []

        init(_ file: String) throws {
            let bytes = try #require(ProcessTable.contents(of: Guide.root.appending(file).string))
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
                if let found = line.firstMatch(of: /^ +([A-Z_0-9]+): (?:&[a-z]+ )?"?([^"]+)"?$/) {
                    variables[String(found.1)] = String(found.2)
                } else if let found = line.firstMatch(of: /name: ([A-Z_]+), valueFrom/) {
                    variables[String(found.1)] = "secret"
                } else if let found = line.firstMatch(of: /^ +(?:args|command): \[((?:init|run).*)\]$/) {
                    commands.append(
                        found.1.split(separator: ", ").map { String($0.replacing("\"", with: "")) })
                }
            }
            variables = variables.filter { name, _ in
                ["WORKER_", "AWS_", "PG"].contains { name.hasPrefix($0) }
            }
        }
    }

    @Test(arguments: ["packaging/compose.yaml", "packaging/kubernetes/worker.yaml"])
    func `Two workers of a manifest share a queue and a bucket, and end within their grace`(_ file: String) async throws
    {
        let manifest = try Manifest(file)
        #expect(manifest.commands.map { $0.first ?? "" } == ["init", "run"])
        let url = try await PostgresServer.running.value.newSchema()
        try await withBucket { w, bucket in
            var variables = bucket.variables(w)
            variables["WORKER_DB"] = url
            for name in variables.keys { #expect(manifest.variables[name] != nil, "\(name)") }
            variables.merge(manifest.variables) { own, _ in own }
            w.set(variables)
            let token = try w.file("token", "0123456789abcdef0123456789abcdef\n")
            let command = try #require(manifest.commands.last).dropFirst().map {
                switch $0 {
                case "0.0.0.0:8080": "127.0.0.1:0"
                case "/token/dashboard-token": token
                default: $0
                }
            }
            try await w.run(try #require(manifest.commands.first))
            let workers = try (1...2).map { number in
                try w.start(
                    command + ["--allow-addresses", "loopback"],
                    environment: ["WORKER_CACHE_FOLDER": w.place("machine-\(number)")])
            }
            let urls = (0..<20).map { w.url("/\($0).png") }
            try await w.enqueue(urls + ["--variant", "t=32x,webp"])
            try await w.eventually("all is done", within: .seconds(60)) {
                try await w.value("SELECT state FROM jobs") == "finished"
            }
            #expect(try await w.value("SELECT count(*) FROM items WHERE state = 'done'") == "20")
            #expect(try await w.value("SELECT count(*) FROM workers") == "2")
            if command.contains("--dashboard") {
                for probe in ["healthz", "readyz"] { try await expectOK(w, workers[0], probe) }
            }
            for worker in workers { worker.send(SIGTERM) }
            for worker in workers { #expect(try await worker.wait() == .code(0)) }
        }
    }

    /// Whether this process may make a bridge between networks: root may, except in some containers.
    private static let canMakeNetworks: Bool = {
        let name = "probe\(getpid() % 100_000)"
        // Best effort: without the programs it can't.
        let made = try? ChildProcess.run("unshare", ["--net", "ip", "link", "add", name, "type", "bridge"])
        guard made == 0, (try? ChildProcess.run("ip", ["link", "add", name, "type", "bridge"])) == 0 else {
            return false
        }
        return (try? ChildProcess.run("ip", ["link", "del", name])) == 0
    }()

    @Test(.enabled(if: canMakeNetworks, "Networks can't be made here; root may, except in some containers."))
    func `The guide's setup works on two machines with networks of their own, one of which is killed`() async throws {
        try await withWorker { w in
            let pictures = w.place("pictures")
            #expect(mkdir(pictures, 0o755) == 0)
            for number in 0..<14 { try w.write(Pictures.png(number), to: "\(pictures)/\(number).png") }
            let shown = try await w.run(
                pictures,
                program: Guide.root.appending("scripts/demo-many-machines").string,
                environment: ["WORKER": TestWorker.binary],
                expecting: nil, within: .seconds(300))
            #expect(shown.exit == .code(0), "\(shown.output)\(shown.errors)")
            for words in [" original | done  |   280", " thumb    | done  |   280", " 0 orphans", "200 image/webp"] {
                #expect(shown.output.contains(words), "\(shown.output)")
            }
        }
    }

    private func expectOK(_ w: TestWorker, _ worker: RunningProgram, _ probe: String) async throws {
        let address = /http:\/\/[0-9.]+:[0-9]+/
        let base = try #require(try w.errors(of: worker).firstMatch(of: address)?.output)
        let told = try await w.run(
            "-sS", "-o", "/dev/null", "-w", "%{http_code}", "\(base)/\(probe)", program: "curl")
        #expect(told.line == "200", "\(probe)")
    }
}
