@testable import Download

// What HTTP says: response headers and their fields, and robots.txt.

extension FuzzTarget {
    static let headerTargets = [
        responseHeaders, dates, retryAfter, contentRange, robotsTag, cacheControl, location, robots,
    ]

    private static let lines = [
        "HTTP/1.1 200 OK", "Content-Length: 123", "Content-Length: 9223372036854775807", "Retry-After: 120",
        "Content-Type: image/jpeg; charset=x", "Cache-Control: max-age=60, no-cache=\"x\"", "Cache-Control: private",
        "Location: //example.com/a b?c#d", "ETag: \"abc\"", "X-Robots-Tag: bot: noai", "Content-Range: bytes 1-2/3",
        "Vary: Accept, *", "Age: 7200, 0", "Expires: 0", "Date: Sun, 06 Nov 1994 08:49:37 GMT",
        "Content-Encoding: gzip",
    ]

    private static let dateTexts = [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ]

    /// A whole block of lines, and what is asked of it.
    private static let responseHeaders = FuzzTarget(
        name: "response-headers", seeds: lines.map { Array($0.utf8) } + [Array(lines.joined(separator: "\r\n").utf8)]
    ) { bytes in
        var headers = ResponseHeaders()
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            headers.absorb(UnsafeRawBufferPointer(rebasing: line))
        }
        _ = (headers.decodedLength, headers.strongETag)
        var request = DownloadRequest(url: "http://example.com/")
        request.contentTypes = ["image/*", "text/plain"]
        _ = request.accepts(contentType: headers.contentType)
        _ = headers.contentRange.flatMap { ContentRange($0) }
        _ = headers.retryAfter.flatMap { RetryAfter.parse($0, now: 1_000) }
        _ = RobotsTag.forbids(headers.robots, agent: "prefetchworker")
        check(
            Freshness(
                cacheControl: headers.cacheControl, expires: headers.expires, date: headers.date, age: headers.age,
                lastModified: headers.lastModified, times: (0, 1)))
    }

    private static let dates = FuzzTarget(name: "dates", seeds: dateTexts.map { Array($0.utf8) }) { bytes in
        guard let seconds = HTTPDate.parse(Array(bytes)) else { return }
        // Years of four digits.
        precondition((-70_000_000_000...300_000_000_000).contains(seconds))
    }

    private static let retryAfter = FuzzTarget(
        name: "retry-after", seeds: (["0", "120", "99999999999999999999"] + dateTexts).map { Array($0.utf8) }
    ) { bytes in
        for now: Int64 in [0, 784_111_777] {
            guard let wait = RetryAfter.parse(text(bytes), now: now) else { continue }
            precondition(wait >= .zero && wait <= .seconds(3_600))
        }
    }

    private static let contentRange = FuzzTarget(
        name: "content-range",
        seeds: ["bytes 100-199/200", "bytes 0-9223372036854775806/*", "bytes */5"].map { Array($0.utf8) }
    ) { bytes in
        guard let range = ContentRange(text(bytes)) else { return }
        precondition(range.first >= 0 && range.length > 0 && range.total ?? .max > range.last)
    }

    private static let robotsTag = FuzzTarget(
        name: "x-robots-tag",
        seeds: ["noai", "somebot: noindex, noai", "unavailable_after: 25 Jun 2010 15:00:00 PST"].map { Array($0.utf8) }
    ) { bytes in _ = RobotsTag.forbids(text(bytes), agent: "prefetchworker") }

    /// A line for each of the fields that freshness is told by.
    private static let cacheControl = FuzzTarget(
        name: "cache-control",
        seeds: [
            Array("max-age=60, must-revalidate\n0\n\(dateTexts[0])\n5\n\(dateTexts[1])".utf8),
            Array("s-maxage=99999999999, private=\"a, b\"\n\n\n9999999999\n".utf8),
        ]
    ) { bytes in
        let fields = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        func field(_ index: Int) -> String? { index < fields.count ? fields[index] : nil }
        check(
            Freshness(
                cacheControl: field(0), expires: field(1), date: field(2), age: field(3), lastModified: field(4),
                times: (0, 1)))
    }

    private static func check(_ freshness: Freshness) {
        precondition(freshness.lifetime >= 0 && freshness.initialAge >= 0)
        for now: Int64 in [0, 2_000_000_000, 100_000_000_000] { _ = freshness.isFresh(at: now) }
    }

    private static let location = FuzzTarget(
        name: "location",
        seeds: ["../a b", "//user:pass@[::1]:99999/%zz", "https://münchen.de/ä?ö#ü"].map { Array($0.utf8) }
    ) { bytes in
        guard let base = try? DownloadURL("http://example.com/a/b", maxBytes: 8_192) else { return }
        _ = try? DownloadURL(location: Array(bytes), relativeTo: base, maxBytes: 8_192)
        _ = AddressPolicy.publicOnly.allows(text(bytes))
    }

    private static let robots = FuzzTarget(
        name: "robots-txt",
        seeds: [
            Array("User-agent: *\nDisallow: /a*b$\nAllow: /%61\n\nUser-agent: prefetchworker\nDisallow: /\n".utf8)
        ]
    ) { bytes in
        let rules = RobotsText(bytes, agent: "prefetchworker")
        for path in ["/", "/robots.txt", "/a/b?c=%41", text(bytes.prefix(100))] { _ = rules.allows(path) }
    }

    private static func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }
}
