import Core
import TestSupport
import Testing

@testable import Jobs

/// The headers and times of a response, as they are stored.
@Suite struct HTTPFactsTests {
    @Test func `Stored facts are read back unchanged`() throws {
        var random = SeededGenerator(seed: 7)
        let values: [String?] = [nil, "", "=", "max-age=60, public", "Mon, 01 Jan 2024 00:00:00 GMT", "{", "ä\u{1E}"]
        for _ in 0..<500 {
            func any() -> String? { values.randomElement(using: &random) ?? nil }
            let facts = HTTPFacts(
                cacheControl: any(), expires: any(), date: any(), age: any(), vary: any(), varied: any(),
                askedAt: WallTime(milliseconds: .random(in: -1 << 52...1 << 52, using: &random)),
                answeredAt: WallTime(milliseconds: .random(in: 0...1, using: &random)),
                redirects: [nil, 1, 5].randomElement(using: &random) ?? nil,
                status: [nil, 203].randomElement(using: &random) ?? nil)
            #expect(HTTPFacts(text: facts.text) == facts)
        }
    }

    @Test func `A separator in a value does not start another fact`() throws {
        let facts = HTTPFacts(
            cacheControl: "a\u{1F}=b", askedAt: WallTime(milliseconds: 1), answeredAt: WallTime(milliseconds: 2))
        #expect(HTTPFacts(text: facts.text)?.cacheControl == "a=b")
        #expect(HTTPFacts(text: facts.text)?.expires == nil)
    }

    @Test func `Facts that earlier versions stored are read`() throws {
        let old = #"{"answeredAt":2,"askedAt":1,"cacheControl":"no-cache","varied":""}"#
        #expect(
            HTTPFacts(text: old)
                == HTTPFacts(
                    cacheControl: "no-cache", varied: "", askedAt: WallTime(milliseconds: 1),
                    answeredAt: WallTime(milliseconds: 2)))
    }

    @Test(arguments: ["", "{", "null", "=a", "\u{1F}\u{1F}\u{1F}\u{1F}\u{1F}\u{1F}=x\u{1F}=1", #"{"askedAt":1}"#])
    func `Unreadable facts are nil`(_ text: String) {
        #expect(HTTPFacts(text: text) == nil)
    }
}
