import Download
import Testing

@Suite(.timeLimit(.minutes(15))) struct RetryAfterTests {
    /// Sun, 06 Nov 1994 08:49:37 GMT
    private static let now: Int64 = 784_111_777

    @Test(arguments: [
        ("0", 0), ("120", 120), (" 7\t", 7), ("3600", 3600), ("3601", 3600), ("000000000060", 60),
        ("99999999999999999999999999", 3600),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60), ("Sunday, 06-Nov-94 08:50:37 GMT", 60), ("Sun Nov  6 08:50:37 1994", 60),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0), ("Sun, 06 Nov 1994 00:00:00 GMT", 0),
        ("Fri, 31 Dec 2032 23:59:59 GMT", 3600), ("Mon Nov  7 00:00:00 1994", 3600),
    ])
    func retryAfterIsParsed(value: String, seconds: Int) {
        #expect(RetryAfter.parse(value, now: Self.now) == .seconds(seconds))
    }

    @Test(arguments: [
        "", " ", "-1", "+5", "1.5", "soon", "5 minutes", "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:00:00 GMT",
        "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 46 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994", "06 Nov 1994 08:49 GMT",
        "１２",
    ])
    func anInvalidRetryAfterIsIgnored(value: String) {
        #expect(RetryAfter.parse(value, now: Self.now) == nil)
    }

    @Test(arguments: [
        ("Thu, 01 Jan 1970 00:00:10 GMT", 0, 10), ("Thu, 29 Feb 2024 00:00:10 GMT", 1_709_164_800, 10),
        ("Fri, 01 Mar 2024 00:00:10 GMT", 1_709_251_200, 10), ("Sat, 01 Jan 2000 00:00:10 GMT", 946_684_800, 10),
    ])
    func retryAfterDatesFollowTheCalendar(value: String, now: Int64, seconds: Int) {
        #expect(RetryAfter.parse(value, now: now) == .seconds(seconds))
    }
}
