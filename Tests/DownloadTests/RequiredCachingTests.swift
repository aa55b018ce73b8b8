import Testing

@testable import Download

/// The rules of RFC 9111 for a shared cache that sends GET only: by its headers, whether a response may be used
/// again at once, or after some seconds, without asking.
@Suite(.timeLimit(.minutes(15))) struct RequiredCachingTests {
    /// 7 November 1994, 08:49:37 UTC.
    private static let now: Int64 = 784_198_177
    private static let date = "Date: Mon, 07 Nov 1994 08:49:37 GMT"
    private static let future = "Expires: Thu, 18 Aug 2050 02:01:18 GMT"
    private static let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"

    struct Case: Sendable, CustomTestStringConvertible {
        var status = 200
        let lines: [String]
        var after: Int64 = 0
        let isReused: Bool

        var testDescription: String { "\(status) \(lines.joined(separator: " | ")) after \(after) s" }
    }

    private static func reused(_ lines: String..., after: Int64 = 0, status: Int = 200) -> Case {
        Case(status: status, lines: lines, after: after, isReused: true)
    }

    private static func asked(_ lines: String..., after: Int64 = 0, status: Int = 200) -> Case {
        Case(status: status, lines: lines, after: after, isReused: false)
    }

    static let freshness = [
        reused("Cache-Control: max-age=3600"), asked("Cache-Control: max-age=3600", after: 3_600),
        asked("Cache-Control: max-age=0"), asked("Cache-Control: max-age=-3600"),
        asked(future, "Cache-Control: max-age=0", date), asked("Cache-Control: max-age='3600'"),
        asked("Cache-Control: max-age=1, extension=\"max-age=3600\"", after: 3),
        asked("Cache-Control: extension=\"max-age=3600\", max-age=1", after: 3),
        reused("Cache-Control: s-maxage=3600"), asked("Cache-Control: max-age=3600, s-maxage=1", after: 3),
        asked("Cache-Control: s-maxage=1, max-age=3600", after: 3),
        asked("Cache-Control: max-age=3600", "Cache-Control: s-maxage=1", after: 3),
        asked("Cache-Control: private, max-age=3600"), asked("Cache-Control: no-store"),
        asked("Cache-Control: No-StOrE"), asked("Cache-Control: max-age=10000, no-store", future, date),
        asked("Cache-Control: max-age=10000, no-cache", future, date),
        asked("Cache-Control: max-age=10000, No-CaChE", future, date),
        asked("Cache-Control: max-age=2, must-revalidate", after: 3),
        reused("Cache-Control: max-age=99999999999"), reused("Cache-Control: max-age=003600"),
        asked("Cache-Control: max-age=2, immutable", after: 3),
        asked("Cache-Control: max-age=3600, no-store, must-understand", status: 299),
        asked("Cache-Control: max-age=2", "Pragma: public", after: 3),
    ]

    static let ages = [
        asked(date, "Cache-Control: max-age=3600", "Age: 7200"),
        reused(date, "Cache-Control: max-age=3600", "Age: abc"),
        reused(date, "Cache-Control: max-age=3600", "Age: -7200"),
        reused(date, "Cache-Control: max-age=3600", "Age: 7200.0"),
        asked(date, "Cache-Control: max-age=3600", "Age: 2147483647"),
        asked(date, "Cache-Control: max-age=3600", "Age: 2147483648"),
        asked(date, "Cache-Control: max-age=3600", "Age: 99999999999999999999"),
        asked(date, "Cache-Control: max-age=3600", "Age: 7200, 0"),
        reused(date, "Cache-Control: max-age=3600", "Age: 0, 7200"),
        asked(date, "Cache-Control: max-age=3600", "Age: 7200", "Age: 0"),
        reused(date, "Cache-Control: max-age=3600", "Age: 0", "Age: 7200"),
        reused(date, "Cache-Control: max-age=3600", "Age: 0, 0"),
        reused(date, "Cache-Control: max-age=10000", "Age: 3600", "Age: 3600"),
        asked(date, "Cache-Control: max-age=3600", "Age: 2147483649"),
        // What is told counts from when it was said, by a clock that is slow, and by one that is fast.
        asked("Date: Mon, 07 Nov 1994 08:49:27 GMT", "Expires: Mon, 07 Nov 1994 08:49:47 GMT", "Age: 25"),
        asked("Date: Mon, 07 Nov 1994 08:49:47 GMT", "Expires: Mon, 07 Nov 1994 08:49:57 GMT", "Age: 15"),
    ]

    static let expiries = [
        asked(date, "Expires: Mon, 07 Nov 1994 08:49:37 GMT"),
        asked("Date: Mon, 07 Nov 1994 08:56:17 GMT", "Expires: Mon, 07 Nov 1994 08:54:37 GMT"),
        reused(date, future), asked(date, "Expires: Sun, 06 Nov 1994 08:49:37 GMT"), asked(date, "Expires: 0"),
        reused(date, "Expires: Thursday, 18-Aug-50 02:01:18 GMT"), reused(date, "Expires: Thu Aug 18 02:01:18 2050"),
        reused(date, "Expires: Mon Aug  8 02:01:18 2050"), asked(date, "Expires: Thu, 18 Aug 2050 02:01:18 UTC"),
        asked(date, "Expires: Thu, 18 Aug 2050 02:01:18 AEST"), asked(date, "Expires: Thu, 18 Aug 50 02:01:18 GMT"),
        asked(date, "Expires: Thu 18 Aug 2050 02:01:18 GMT"), asked(date, "Expires: Thu, 18  Aug  2050 02:01:18 GMT"),
        asked(date, "Expires: Thu, 18-Aug-2050 02:01:18 GMT"), asked(date, "Expires: Thu, 18 Aug 2050 02.01.18 GMT"),
        asked(date, "Expires: Thu, 18 Aug 2050 2:01:18 GMT"),
        asked(date, "Expires: Thu, 18 Aug 2050 02:01:18 GMT", "Expires: Thu, 18 Aug 2050 02:01:19 GMT"),
        asked(date, "Expires: Thu, 18 Aug 2050 2:01:18 GMT", modified),
    ]

    static let guesses = [
        reused(date, modified), reused(date, modified, status: 203), asked(date, modified, status: 201),
        asked(date, modified, status: 202), asked(date, modified, status: 205), asked(date, modified, status: 226),
        reused(date, modified, "Cache-Control: max-age=60", status: 201), asked(date), asked("X: y"),
        asked(date, modified, "Cache-Control: no-cache"), asked(date, modified, status: 299),
    ]

    /// Once it is stale, whatever its status.
    static let stale = [200, 203, 204, 206, 299].map { status in
        asked(date, "Expires: Mon, 07 Nov 1994 07:26:17 GMT", modified, status: status)
    }

    @Test(arguments: freshness + ages + expiries + guesses + stale) func aResponseIsReusedOnlyAsTheStandardAllows(
        _ given: Case
    ) {
        var headers = ResponseHeaders()
        for line in given.lines { Array("\(line)\r\n".utf8).withUnsafeBytes { headers.absorb($0) } }
        let freshness = Freshness(
            status: given.status, cacheControl: headers.cacheControl, expires: headers.expires, date: headers.date,
            age: headers.age, lastModified: headers.lastModified, times: (Self.now, Self.now))
        #expect(freshness.isFresh(at: Self.now + given.after) == given.isReused)
    }
}
