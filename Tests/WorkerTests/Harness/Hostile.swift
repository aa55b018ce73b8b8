import Glibc
import TestSupport
import Testing

/// What an origin does, and what must come of it.
struct Hostile: Sendable, CustomTestStringConvertible {
    let name: String
    let script: [LoopbackReply]
    /// `state|class|attempts` of the item.
    let end: String
    let requests: Int
    var atLeast: Duration = .zero
    var atMost: Duration = .seconds(10)
    var isBlacklisted = false

    var testDescription: String { name }

    /// Ends with a class after one try, and its URL is listed.
    static func refused(_ name: String, _ failure: String, _ reply: LoopbackReply, requests: Int = 1) -> Hostile {
        Hostile(name: name, script: [reply], end: "failed|\(failure)|1", requests: requests, isBlacklisted: true)
    }

    /// Ends with a class after four tries.
    static func hopeless(_ name: String, _ failure: String, _ reply: LoopbackReply, isListed: Bool = false) -> Hostile {
        Hostile(
            name: name, script: [reply], end: "failed|\(failure)|4", requests: 4, atMost: .seconds(15),
            isBlacklisted: isListed)
    }

    /// Works out after some tries.
    static func passing(_ name: String, _ replies: [LoopbackReply], atLeast: Duration = .zero) -> Hostile {
        Hostile(
            name: name, script: replies + [.ok(Pictures.png(2))], end: "done||\(replies.count + 1)",
            requests: replies.count + 1, atLeast: atLeast)
    }

    /// So much of a picture that nothing is wrong with it yet.
    private static let start = Array(Pictures.png(9).prefix(1_000))

    static let replies = [
        refused("404", "http-404", .status(404)),
        refused("401", "http-401", .status(401)),
        refused("501", "http-501", .status(501)),
        hopeless("500 for ever", "http-500", .status(500)),
        passing("500, then all is well", [.status(500)]),
        passing("429 with Retry-After", [.status(429, headers: [("Retry-After", "1")])], atLeast: .milliseconds(900)),
        passing("503 with a date", [.status(503, headers: [("Retry-After", date(in: 2))])]),
        passing("503 with nonsense", [.status(503, headers: [("Retry-After", "soon")])]),
        refused("a redirect loop", "too-many-redirects", .redirect(to: "/bad"), requests: 6),
        refused("a redirect to a private address", "forbidden-address", .redirect(to: "http://10.255.255.1/")),
        refused("a redirect to a metadata service", "forbidden-address", .redirect(to: "http://169.254.169.254/x")),
        refused("a redirect to a file", "invalid-url", .redirect(to: "file:///etc/passwd")),
    ]

    static let bodies = [
        hopeless("a short Content-Length", "connection-lost", .partial(start, of: 9_000, then: .close)),
        refused("a gigabyte in chunks", "too-large", .chunked(totalBytes: 1 << 30, startingWith: start)),
        refused("text for ever", "not-an-image", .chunked(totalBytes: 1 << 30)),
        refused("a gigabyte announced", "too-large", .partial(start, of: 1 << 30, then: .stall)),
        refused("an empty body", "bad-image", .ok([], type: "image/png")),
        refused(
            "HTML called JPEG", "not-an-image",
            .ok(Array("<!DOCTYPE html><html><body>Not found</body></html>".utf8), type: "image/jpeg")),
        refused(
            "SVG", "not-an-image", .ok(Array("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8), type: "image/svg+xml")),
        refused(
            "50,000 × 50,000 pixels", "too-many-pixels",
            .partial(TestImages.pngHeaderOnly(50_000, 50_000), of: 900_000, then: .stall)),
        refused("half a PNG", "truncated", .ok(Array(Pictures.png(3).prefix(Pictures.png(3).count / 2)))),
        hopeless(
            "a lying Content-Encoding", "truncated", .ok(Pictures.png(4), headers: [("Content-Encoding", "gzip")]),
            isListed: true),
    ]

    static let connections = [
        hopeless("a reset", "connection-lost", .partial(start, of: 9_000, then: .reset)),
        hopeless("garbage", "connection-lost", .garbage),
        hopeless("no reply", "connection-lost", .noReply),
        hopeless("a stall", "timeout", .partial(start, of: 9_000, then: .stall)),
        hopeless("silence", "timeout", .silence),
        hopeless("a slow drip", "timeout", .partial(start, of: 9_000, then: .drip(bytesPerSecond: 200))),
        refused("huge headers", "too-large", .hugeHeaders(bytes: 500_000)),
        refused("one huge header", "too-large", .hugeHeaders(bytes: 200_000, inOneLine: true)),
    ]

    /// A time of HTTP, so many seconds from now.
    private static func date(in seconds: Int) -> String {
        var then = time(nil) + seconds
        var parts = tm()
        gmtime_r(&then, &parts)
        var buffer = [CChar](repeating: 0, count: 64)
        let count = strftime(&buffer, buffer.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
        return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
