import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing

/// The instructions for web servers on the page about the cache, run as they are.
@Suite(.timeLimit(.minutes(15))) struct WebServerTests {
    private static let page: String = {
        let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        return String(
            decoding: ProcessTable.contents(of: root.appending("docs/reference/cache.md").string) ?? [],
            as: UTF8.self)
    }()

    /// The page's block for nginx, for another folder.
    private func locations(serving folder: String) throws -> String {
        let block = try #require(Self.page.split(separator: "```nginx\n").dropFirst().first).prefix { $0 != "`" }
        let root = "root /var/cache/worker/links;"
        #expect(block.contains(root) && block.contains("try_files"))
        return String(block.replacing(root, with: "root \(folder);"))
    }

    @Test(.enabled(if: Nginx.isAvailable, "nginx and openssl are needed"))
    func nginxServesACacheHitByItsLinkAlone() async throws {
        try await withWorker { w in
            let url = w.url("/3.png")
            try await w.enqueue(url, "--variant", "thumb=16x12,webp")
            try await w.drain("--links", "tree")
            let scratch = FilePath(w.place("nginx"))
            guard mkdir(scratch.string, 0o755) == 0 else { throw Errno(rawValue: errno) }
            // Nothing but the page's own location serves the tree.
            let nginx = try Nginx(
                serving: scratch, scratch: scratch, locations: try locations(serving: w.cache + "/links"))
            defer { nginx.stop() }
            let link = try await w.run("get", url, "--variant", "thumb", "--link").line
            #expect(link.hasPrefix("\(w.cache)/links/thumb/") && link.hasSuffix(".webp"))
            // Outside, the name is enough.
            let address = nginx.url("/thumb/" + (FilePath(link).lastComponent?.string ?? ""))
            try await w.run(["--silent", "--fail", "--output", w.place("served"), address], program: "curl")
            #expect(try w.bytes(of: w.place("served")) == w.bytes(of: try await w.path(url, variant: "thumb")))
            // A miss is what the page's last location says.
            try await w.run("cache", "clear", "--yes")
            let missed = try await w.run(
                ["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", address], program: "curl")
            #expect(missed.line == "404")
            // The tree is removed as it was made, so that nothing is left over.
            try await w.drain("--links", "none")
            _ = try ChildProcess.run("rm", ["-rf", "--", w.cache + "/links"])
        }
    }

    /// How a recipe of the page becomes a program that prints what it says of its first argument.
    private static let programs: [(language: String, command: [String], before: String, after: String)] = [
        ("shell", ["sh", "-c"], "url=$0; ", ""),
        ("Python", ["python3", "-c"], "import hashlib, sys; url = sys.argv[1]; print(", ")"),
        ("Perl", ["perl", "-MDigest::SHA=sha256_hex", "-e"], "my $url = $ARGV[0]; print ", ""),
        (
            "JavaScript (Node)", ["node", "-e"],
            "const crypto = require('crypto'); const url = process.argv[1]; console.log(",
            ")"
        ),
        ("PHP", ["php", "-r"], "$url = $argv[1]; echo ", ";"),
        ("Ruby", ["ruby", "-rdigest", "-e"], "url = ARGV[0]; puts ", ""),
    ]

    /// Recipes without an installed interpreter are left out; the shell is always there.
    @Test(arguments: programs.filter { ChildProcess.find($0.command[0]) != nil }.map(\.language))
    func everyRecipeComputesTheNameOfTheLink(_ language: String) async throws {
        let program = try #require(Self.programs.first { $0.language == language })
        let line = try #require(Self.page.split(separator: "\n").first { $0.hasPrefix("| \(language) |") })
        let recipe = try #require(line.replacing("\\|", with: "\u{1}").split(separator: "`").dropFirst().first)
            .replacing("\u{1}", with: "|")
        try await withWorker { w in
            let url = w.url("/5.png") + "?q=ä&x='1'"
            try await w.enqueue(url)
            try await w.drain("--links", "tree")
            let script = program.before + recipe + program.after
            let name = try await w.run(program.command.dropFirst() + [script, url], program: program.command[0]).line
            let link = try await w.run("get", url, "--link").line
            #expect(link == "\(w.cache)/links/original/\(name.prefix(2))/\(name).png")
            try await w.drain("--links", "none")
            _ = try ChildProcess.run("rm", ["-rf", "--", w.cache + "/links"])
        }
    }
}
