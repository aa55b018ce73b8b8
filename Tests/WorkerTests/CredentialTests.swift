import TestSupport
import Testing

/// A user name and a password in a URL, and what of them can be seen.
@Suite("Credentials in URLs", .timeLimit(.minutes(15)))
struct CredentialTests {
    @Test func `Nothing that is shown has them, unless somebody asks for it`() async throws {
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
}
