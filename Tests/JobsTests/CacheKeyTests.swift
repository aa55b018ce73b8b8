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
        ("s/b/\\9\\\\/", "https://x.example/b", "https://x.example/9\\"),
    ]

    @Test(arguments: keys.indices)
    func `A rule makes the key`(_ index: Int) throws {
        let (rule, url, key) = Self.keys[index]
        #expect(try CacheKeyRule(rule).key(of: url) == key)
    }

    @Test(arguments: [
        "cache-key=", "cache-key=all", "cache-key=s/a", "cache-key=s/(/x/", "cache-key=s//x/", "max-age=",
        "max-age=soon", "colour=red", "max-age=-2", "content-types=", "content-types=png", "content-types=image/",
    ])
    func `A wrong one is refused with what would be right`(_ option: String) {
        #expect { try JobOptions(parsing: option) } throws: { error in
            (error as? JobsError)?.code == .refused
                && ["max-age", "cache-key", "content-types"].contains { "\(error)".contains($0) }
        }
    }

    @Test func `They stand among the other options`() throws {
        let text = "retry-failed, max-age=12h cache-key=drop-query"
        #expect(try JobOptions(parsing: text) == .retryFailed)
        let settings = try JobSettings(parsing: text)
        #expect(settings.maxAge == 43_200_000)
        #expect(settings.cacheKey == .dropQuery)
        #expect(try JobSettings(parsing: "max-age=-1").maxAge == -1)
        #expect(try JobSettings(parsing: "content-types=image/JPEG+image/*").contentTypes == ["image/jpeg", "image/*"])
        #expect(try JobSettings(parsing: nil) == JobSettings(parsing: "progressive"))
    }
}
