import Core
import TestSupport
import Testing

@testable import ObjectStorage

@Suite("Texts of servers", .timeLimit(.minutes(5)))
struct TextTests {
    @Test func `Elements, texts and entities of XML are read`() {
        let text = """
            <?xml version="1.0"?><a:R xmlns:a="urn:x"><Key> a &amp; &#228;<![CDATA[<b>]]></Key>
            <Contents><Key>1</Key></Contents><Contents><Key>2</Key></Contents></a:R>
            """
        let root = XMLReader.read(Array(text.utf8))
        #expect(root?.name == "R")
        #expect(root?["Key"] == " a & ä<b>")
        #expect(root?.all("Contents").map { $0["Key"] } == ["1", "2"])
        #expect(root?.first("Contents", "Key")?.text == "1")
        #expect(root?.first("Contents", "None") == nil)
    }

    static let refused = [
        "", "no XML", "<a>", "<a></b>", "<a/><b/>", "<a>&unknown;</a>", "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
        "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>",
        "<!DOCTYPE a [<!ENTITY % b SYSTEM \"http://127.0.0.1:1/\"> %b;]><a/>",
        String(repeating: "<a>", count: 20) + String(repeating: "</a>", count: 20),
        "<a>" + String(repeating: "<b/>", count: 60_000) + "</a>",
        "<a>" + String(repeating: "b", count: XMLReader.maxBytes) + "</a>",
    ]

    @Test(arguments: refused.indices)
    func `Unusual XML is refused`(_ index: Int) {
        #expect(XMLReader.read(Array(Self.refused[index].utf8)) == nil)
    }

    @Test(arguments: [
        ("2026-11-26T09:30:00Z", 1_795_685_400_000), ("2026-11-26T09:30:00.123Z", 1_795_685_400_000),
        ("1970-01-01T00:00:00Z", 0),
    ])
    func `A timestamp is read`(_ text: String, _ milliseconds: Int64) {
        #expect(WallTime(timestamp: text)?.milliseconds == milliseconds)
    }

    @Test func `A header's date is read`() {
        #expect(WallTime(httpDate: "Thu, 26 Nov 2026 09:30:00 GMT")?.milliseconds == 1_795_685_400_000)
    }

    @Test(arguments: [
        "", "T", "Z", "2026-11-26", "2026-11-26T09:30:00", "2026-13-26T09:30:00Z", "2026-11-26T25:30:00Z",
        "99999999999999999999-11-26T09:30:00Z", "+026-11-26T09:30:00Z", "2026-11-26T09:30:00.1.1Z", "2026-11-26T.Z",
    ])
    func `An invalid time is nil`(_ text: String) {
        #expect(WallTime(timestamp: text) == nil)
        #expect(WallTime(httpDate: text) == nil)
    }

    /// Valid texts with some bytes changed, left out or doubled.
    @Test func `No mutated text traps`() {
        let seeds = [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><a x=\"1\"><b>&lt;&#65;<![CDATA[c]]></b><!-- d --><e/></a>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "[default]\na = b # c\n[profile x]\ny =\n  z = 1\n",
            "2026-11-26T09:30:00.123Z", "Thu, 26 Nov 2026 09:30:00 GMT", "a%20b+%C3%A4", "https://[::1]:9000/a?b",
            "s3://bucket/a/b",
        ]
        var random = SeededGenerator(seed: 7)
        for round in 0..<8_000 {
            var bytes = Array(seeds[round % seeds.count].utf8)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<max(1, bytes.count), using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0 where place < bytes.count: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1 where place < bytes.count: bytes.removeSubrange(place..<min(bytes.count, place + 3))
                default: bytes.insert(contentsOf: bytes.suffix(5), at: min(place, bytes.count))
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            _ = XMLReader.read(bytes)
            _ = ProfileFiles.section("default", of: text)
            _ = WallTime(timestamp: text)
            _ = WallTime(httpDate: text)
            _ = PercentEncoding.decoded(text)
            _ = HTTPAddress.split(text)
            // Best effort: only a trap would be a mistake.
            _ = try? BucketLocation(text)
        }
    }

    @Test func `Pauses grow at random within their limits`() {
        let policy = RequestRetries(tries: 9, shortestPause: 50, longestPause: 5_000)
        var random: any RandomNumberGenerator = SystemRandomNumberGenerator()
        var seen: Set<Int> = []
        for _ in 0..<200 {
            var pauses = RetryPauses(policy)
            var last = 50
            for _ in 0..<12 {
                let next = pauses.next(atLeast: nil, using: &random)
                #expect((50...min(5_000, 3 * last)).contains(next))
                seen.insert(next)
                last = next
            }
        }
        #expect(seen.count > 500)
        #expect((seen.max() ?? 0) > 3_000)
    }

    @Test(arguments: [
        (Int.min, Int.max, Int.max), (Int.max, Int.min, 0), (0, 0, Int.max), (-1, -5, -9),
    ])
    func `Pauses of invalid options don't trap`(_ shortest: Int, _ longest: Int, _ announced: Int) {
        var pauses = RetryPauses(RequestRetries(tries: 3, shortestPause: shortest, longestPause: longest))
        var random = SystemRandomNumberGenerator()
        for _ in 0..<50 { #expect((0...86_400_000).contains(pauses.next(atLeast: announced, using: &random))) }
    }

    @Test func `A server's Retry-After is obeyed up to the longest pause`() {
        var random = SystemRandomNumberGenerator()
        var pauses = RetryPauses(RequestRetries(tries: 3, shortestPause: 1, longestPause: 5_000))
        #expect(pauses.next(atLeast: 2_000, using: &random) == 2_000)
        #expect(pauses.next(atLeast: 86_400_000, using: &random) == 5_000)
    }
}
