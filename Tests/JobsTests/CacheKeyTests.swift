import Jobs
import Testing

@Suite("Options with a value", .timeLimit(.minutes(15)))
struct CacheKeyTests {
    static let keys: [(rule: String, url: String, key: String)] = [
        ("drop-query", "https://a.example/b?sig=1#x", "https://a.example/b"),
        ("drop-query", "https://a.example/b", "https://a.example/b"),
        ("keep:w+h", "https://a.example/b?sig=1&w=2&h=3&w2=9", "https://a.example/b?h=3&w=2"),
        ("keep:w", "https://a.example/b?sig=1", "https://a.example/b"),
        ("keep:", "https://a.example/b?sig=1", "https://a.example/b"),
        ("s/[?&]sig=[^&]*//", "https://a.example/b?sig=1&w=2", "https://a.example/b&w=2"),
        ("s#^https://cdn[0-9]+[.]#https://cdn.#", "https://cdn17.a.example/b", "https://cdn.a.example/b"),
        ("s/^https:..(.*)-v([0-9]+)[.]jpg$/\\1.\\2/", "https://a.example/x-v12.jpg", "a.example/x.12"),
        ("s/.*//", "https://a.example/b", "https://a.example/b"),
        ("s/b/\\\\/", "https://x.example/b", "https://x.example/\\"),
        ("s/(x)?b/[\\1]/", "https://a.example/xb.b", "https://a.example/[x].[]"),
        ("s/x*/-/", "a/xxb", "-a-/--b-"),
        ("s/é/e/", "https://a.example/é?é", "https://a.example/e?e"),
        ("s/(?i)%2F/|/", "https://a.example/%2f%2F", "https://a.example/||"),
    ]

    @Test(arguments: keys.indices)
    func `A rule turns a URL into its cache key`(_ index: Int) throws {
        let (rule, url, key) = Self.keys[index]
        #expect(try CacheKeyRule(rule).key(of: url) == key)
    }

    @Test(arguments: [("(a+)+$", "x"), ("(a|aa)+$", "")])
    func `A pattern of exponential cost is given up`(_ pattern: String, _ replacement: String) throws {
        let rule = try CacheKeyRule("s/\(pattern)/\(replacement)/")
        #expect(throws: JobsError.self) {
            _ = try rule.key(of: "https://a.example/" + String(repeating: "a", count: 60) + "!")
        }
        #expect(try rule.key(of: "https://x.example/") == "https://x.example/")
    }

    @Test func `A pattern with thousands of matches is given up, too`() throws {
        let rule = try CacheKeyRule("s/a/b/")
        #expect(throws: JobsError.self) { _ = try rule.key(of: String(repeating: "a", count: 5_000)) }
    }

    @Test(arguments: [
        "cache-key=", "cache-key=all", "cache-key=s/a", "cache-key=s/(/x/", "cache-key=s//x/", "cache-key=s/x/\\9/",
        "cache-key=s/(x)/\\2/", "max-age=",
        "max-age=soon", "colour=red", "max-age=-2", "content-types=", "content-types=png", "content-types=image/",
    ])
    func `An invalid setting is refused with the name of a valid one`(_ option: String) {
        #expect { try JobOptions(parsing: option) } throws: { error in
            (error as? JobsError)?.code == .refused
                && ["max-age", "cache-key", "content-types"].contains { "\(error)".contains($0) }
        }
    }

    @Test func `Settings are parsed among the other options`() throws {
        let text = "retry-failed, max-age=12h cache-key=drop-query"
        #expect(try JobOptions(parsing: text) == .retryFailed)
        let settings = try JobSettings(parsing: text)
        #expect(settings.maxAge == 43_200_000)
        #expect(try settings.cacheKey == CacheKeyRule("drop-query"))
        #expect(try JobSettings(parsing: "max-age=-1").maxAge == -1)
        #expect(try JobSettings(parsing: "content-types=image/JPEG+image/*").contentTypes == ["image/jpeg", "image/*"])
        #expect(try JobSettings(parsing: nil) == JobSettings(parsing: "progressive"))
    }
}
