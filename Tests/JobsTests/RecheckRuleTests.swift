import Core
import Testing

@testable import Jobs

/// How often sources are checked by jobs with the option `recheck`.
@Suite(.timeLimit(.minutes(15))) struct RecheckRuleTests {
    private static let hour: Int64 = 3_600_000

    private func rule(_ text: String) throws -> RecheckRule {
        try #require(try JobSettings(parsing: "recheck=\(text)").recheck)
    }

    private func source(_ hash: String, fetchedAt: Int64, after interval: Int64? = nil) -> SourceRecord {
        var source = SourceRecord(
            key: "https://a.example/1.jpg", hash: hash, size: 1, isKept: true,
            fetchedAt: WallTime(milliseconds: fetchedAt))
        source.recheckAfter = interval
        return source
    }

    @Test(arguments: ["", "1h", "1h..", "..1h", "2h..1h", "0..1h", "0s..1h", "1..2", "1h-2h", "1h..2h..3h", "-1h..2h"])
    func `Invalid bounds are refused`(_ text: String) {
        #expect(throws: JobsError.self) { try JobSettings(parsing: "recheck=\(text)") }
    }

    @Test(arguments: ["recheck=1h..2h max-age=1h", "recheck=1h..2h refresh-cached", "http-cache, recheck=1h..2h"])
    func `The option recheck excludes max-age, refresh-cached and http-cache`(_ text: String) {
        #expect(throws: JobsError.self) {
            _ = try JobOptions(parsing: text)
            _ = try JobSettings(parsing: text)
        }
    }

    @Test func `The interval grows to 1.4 times if unchanged and shrinks to 0.8 if changed, within the bounds`() throws
    {
        let rule = try rule("1h..10h")
        let cases: [(before: Int64?, isChanged: Bool, after: Double)] = [
            (nil, false, 1.4), (2 * Self.hour, false, 2.8), (2 * Self.hour, true, 1.6), (nil, true, 1),
            (9 * Self.hour, false, 10), (100 * Self.hour, true, 8), (-5, false, 1.4), (.max, true, 8),
        ]
        for (before, isChanged, after) in cases {
            let interval = RecheckRule.interval(
                of: source(isChanged ? "b" : "a", fetchedAt: 2), after: source("a", fetchedAt: 1, after: before), rule)
            #expect(interval == Int64((after * Double(Self.hour)).rounded()), "\(before ?? 0) \(isChanged)")
        }
    }

    @Test func `The interval stays the same without a request, and for jobs without the option`() throws {
        let known = source("a", fetchedAt: 1, after: 7)
        #expect(RecheckRule.interval(of: source("a", fetchedAt: 1), after: known, try rule("1h..2h")) == 7)
        #expect(RecheckRule.interval(of: source("b", fetchedAt: 2), after: known, nil) == 7)
        #expect(RecheckRule.interval(of: source("b", fetchedAt: 2), after: nil, try rule("1h..2h")) == nil)
    }
}
