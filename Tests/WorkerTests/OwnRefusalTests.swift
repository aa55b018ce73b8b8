import FoundationEssentials
import TestSupport
import Testing

/// Every command that shows failures names the flag that would allow a URL that the worker's settings refuse.
@Suite("Refused by a worker's own settings", .timeLimit(.minutes(15))) struct OwnRefusalTests {
    struct Refusal: Sendable, CustomTestStringConvertible {
        let name: String
        let path: String
        let arguments: [String]
        let failure: String
        let flags: [String]
        /// With these it is done.
        let remedy: [String]

        var testDescription: String { name }
    }

    private static let film = TestImages.gif(40, 30, frames: [100, 200, 10])
    private static let scans = TestImages.jpeg(1_000, 1_000, scans: 3)

    static let refusals = [
        Refusal(
            name: "an announced length", path: "/1.png", arguments: ["--max-body", "100B"], failure: "too-large",
            flags: ["--max-body"], remedy: ["--max-body", "1MB"]),
        Refusal(
            name: "chunks without an end", path: "/chunks", arguments: ["--max-body", "100B"], failure: "too-large",
            flags: ["--max-body"], remedy: ["--max-body", "1MB"]),
        Refusal(
            name: "a length above the cache's", path: "/1.png", arguments: ["--cache-max-size", "100B"],
            failure: "too-large", flags: ["--cache-max-size"], remedy: ["--cache-max-size", "1MB"]),
        Refusal(
            name: "pixels", path: "/1.png", arguments: ["--max-pixels", "3000"], failure: "too-many-pixels",
            flags: ["--max-pixels"], remedy: ["--max-pixels", "3072"]),
        Refusal(
            name: "frames", path: "/film", arguments: ["--max-frames", "2"], failure: "too-many-pixels",
            flags: ["--max-frames"], remedy: ["--max-frames", "3"]),
        Refusal(
            name: "pixels of all frames", path: "/film", arguments: ["--max-animation-pixels", "3599"],
            failure: "too-many-pixels", flags: ["--max-animation-pixels"], remedy: ["--max-animation-pixels", "3600"]),
        Refusal(
            name: "a decoder's memory", path: "/scans", arguments: ["--max-decoder-memory", "1MB"],
            failure: "too-many-pixels", flags: ["--max-decoder-memory"], remedy: ["--max-decoder-memory", "100MB"]),
        Refusal(
            name: "redirects", path: "/away2", arguments: ["--max-redirects", "1"], failure: "too-many-redirects",
            flags: ["--max-redirects"], remedy: ["--max-redirects", "2"]),
        Refusal(
            name: "a file", path: "file", arguments: [], failure: "denied", flags: ["--allow-files"],
            remedy: ["--allow-files", "SCRATCH"]),
        Refusal(
            name: "a picture in its URL", path: "data", arguments: [], failure: "denied", flags: ["--allow-data"],
            remedy: ["--allow-data"]),
        Refusal(
            name: "an address", path: "/1.png", arguments: ["--allow-addresses", "10.0.0.0/8"],
            failure: "forbidden-address", flags: ["--allow-addresses"], remedy: ["--allow-addresses", "loopback"]),
        Refusal(
            name: "a redirect to an address", path: "/private", arguments: ["--allow-addresses", "loopback"],
            failure: "forbidden-address", flags: ["--allow-addresses"], remedy: []),
    ]

    private static func reply(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        switch request.path {
        case "/film": return .ok(film)
        case "/scans": return .ok(scans)
        case "/private": return .redirect(to: "http://10.255.255.1/1.png")
        case "/away2": return .redirect(to: "/away1")
        case "/away1": return .redirect(to: "/1.png")
        case "/chunks":
            let picture = Pictures.png(1)
            let size = Array("\(String(picture.count, radix: 16))\r\n".utf8)
            return .raw(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                body: size + picture + Array("\r\n0\r\n\r\n".utf8))
        default: return Pictures.reply(request)
        }
    }

    @Test(arguments: refusals)
    func `A refusal by a setting names the flag, blames no host, and is fetched with the flag`(_ refusal: Refusal)
        async throws
    {
        try await withWorker(Self.reply) { w in
            var url = w.url(refusal.path)
            if refusal.path == "file" {
                try w.write(Pictures.png(1), to: w.place("1.png"))
                url = "file://\(w.place("1.png"))"
            } else if refusal.path == "data" {
                url = "data:image/png;base64,\(Data(Pictures.png(1)).base64EncodedString())"
            }
            func arguments(_ more: [String]) -> [String] {
                // An own list of addresses is in place of the usual one.
                let usual = more.contains("--allow-addresses") ? Array(TestWorker.quick.dropFirst(2)) : TestWorker.quick
                return ["run", "--drain"] + usual + more.map { $0 == "SCRATCH" ? w.scratch : $0 }
            }
            try await w.enqueue(url, "--variant", "it=8x8,png")
            let run = try await w.run(arguments(refusal.arguments), expecting: 2)
            #expect(!run.errors.contains("worst hosts"), "\(run.errors)")
            #expect(try await w.value("SELECT class, attempts FROM failures") == "\(refusal.failure)|1")
            for command in [
                ["results", "1"], ["results", "1", "--failed", "--format", "csv"],
                ["results", "1", "--failed", "--json"], ["explain", url], ["explain", url, "--json"],
            ] {
                let told = try await w.run(command).output
                for flag in refusal.flags { #expect(told.contains(flag), "\(command): \(told)") }
            }
            let message = try await w.value("SELECT message FROM failures")
            for flag in refusal.flags { #expect(message.contains(flag), "\(message)") }
            guard !refusal.remedy.isEmpty else { return }
            let again = try await w.enqueue(url, "--variant", "it=8x8,png")
            try await w.run(arguments(refusal.remedy))
            #expect(try await w.counts(again) == "1|0|0|0|0")
        }
    }

    /// The message does not tell whether the file exists.
    @Test func `A file outside of the allowed folders is denied with the flag's name`() async throws {
        try await withWorker { w in
            try w.write(Pictures.png(1), to: w.place("1.png"))
            try await w.enqueue("file://\(w.place("1.png"))", "file:///usr/share/none.png")
            try await w.drain("--allow-files", "/usr/share", expecting: 2)
            let found = try await w.rows("SELECT class, message FROM failures ORDER BY item")
            #expect(
                found == [
                    "denied|The file is in no folder of --allow-files.",
                    "http-404|There is no such file in the folders of --allow-files.",
                ])
            // Not on the blacklist, so it is read as soon as its folder is allowed.
            try await w.enqueue("file://\(w.place("1.png"))")
            try await w.drain("--allow-files", w.scratch)
            #expect(try await w.counts("2") == "1|0|0|0|0")
        }
    }
}
