import Download
import Testing

/// RFC 9111, with times of the test's own.
@Suite(.timeLimit(.minutes(15))) struct FreshnessTests {
    /// 7 November 1994, 08:49:37 UTC.
    private static let now: Int64 = 784_198_177
    private static let date = "Mon, 07 Nov 1994 08:49:37 GMT"

    struct Case: Sendable {
        var cacheControl: String?
        var expires: String?
        var date: String? = FreshnessTests.date
        var age: String?
        var lastModified: String?
        var asked: Int64 = 0
        let lifetime: Int64
        var initialAge: Int64 = 0
        var mustRevalidate = false
        var isStrict = false
    }

    static let cases = [
        Case(cacheControl: "max-age=60", lifetime: 60),
        Case(cacheControl: "Public, MAX-AGE = \"60\"", lifetime: 60),
        Case(cacheControl: "max-age=60, s-maxage=5", lifetime: 5, isStrict: true),
        Case(cacheControl: "max-age=60", expires: "Mon, 07 Nov 1994 10:49:37 GMT", lifetime: 60),
        Case(expires: "Mon, 07 Nov 1994 10:49:37 GMT", lifetime: 7_200),
        Case(expires: "Sun, 06 Nov 1994 08:49:37 GMT", lifetime: 0),
        Case(expires: "0", lifetime: 0),
        Case(cacheControl: "no-cache, max-age=60", lifetime: 60, mustRevalidate: true, isStrict: true),
        Case(cacheControl: "no-store", lifetime: 0, mustRevalidate: true, isStrict: true),
        Case(cacheControl: "no-cache=\"set-cookie, x\", max-age=9", lifetime: 9),
        Case(cacheControl: "max-age=60, must-revalidate", lifetime: 60, isStrict: true),
        Case(cacheControl: "max-age=60", age: "45", lifetime: 60, initialAge: 45),
        Case(cacheControl: "max-age=60", age: "45", asked: 3, lifetime: 60, initialAge: 48),
        Case(cacheControl: "max-age=60", age: "-5", lifetime: 60),
        Case(cacheControl: "max-age=60", date: "Mon, 07 Nov 1994 08:49:07 GMT", lifetime: 60, initialAge: 30),
        Case(cacheControl: "max-age=60", date: nil, lifetime: 60),
        Case(cacheControl: "max-age=99999999999999999999", lifetime: 1 << 31),
        Case(cacheControl: "max-age=soon", lifetime: 0),
        Case(cacheControl: ",,=,max-age=7,max-age=9,\"", lifetime: 7),
        Case(lastModified: "Mon, 07 Nov 1994 07:49:37 GMT", lifetime: 360),
        Case(lastModified: "Mon, 07 Nov 1983 07:49:37 GMT", lifetime: 7 * 86_400),
        Case(lastModified: "Tue, 08 Nov 1994 07:49:37 GMT", lifetime: 0),
        Case(lifetime: 0),
    ]

    @Test(arguments: cases.indices) func freshnessFollowsTheStandard(_ index: Int) {
        let given = Self.cases[index]
        let freshness = Freshness(
            cacheControl: given.cacheControl, expires: given.expires, date: given.date, age: given.age,
            lastModified: given.lastModified, times: (Self.now - given.asked, Self.now))
        #expect(freshness.lifetime == given.lifetime)
        #expect(freshness.initialAge == given.initialAge)
        #expect(freshness.mustRevalidate == given.mustRevalidate)
        #expect(freshness.isStrict == given.isStrict)
        #expect(freshness.isFresh(at: Self.now) == (!given.mustRevalidate && given.lifetime > given.initialAge))
    }

    @Test func freshnessEndsWithItsLifetimeAndIsNotLengthenedByAClockSetBack() {
        let freshness = Freshness(
            cacheControl: "max-age=60", expires: nil, date: Self.date, age: nil, lastModified: nil,
            times: (Self.now, Self.now))
        #expect(freshness.isFresh(at: Self.now + 59))
        #expect(!freshness.isFresh(at: Self.now + 60))
        #expect(freshness.age(at: Self.now - 86_400) == 0)
    }

    @Test(arguments: [
        ("max-age=0", "", 1_000_000, true), ("max-age=10, stale-if-error=60", "", 70, true),
        ("max-age=10, stale-if-error=60", "", 71, false), ("max-age=10, Stale-If-Error=\"60\"", "", 71, false),
        ("max-age=10, stale-if-error=soon", "", 11, false), ("max-age=10", "stale-if-error=5", 16, false),
        ("max-age=10", "stale-if-error=5", 15, true), ("max-age=10, stale-if-error=60", "stale-if-error=5", 16, false),
        ("max-age=10, stale-if-error=5", "stale-if-error=60", 16, false),
        ("max-age=10, stale-if-error=99999999999999999999", "", 1_000_000, true),
        ("max-age=10, must-revalidate, stale-if-error=60", "", 11, false),
    ])
    func staleIfErrorLimitsTheUseOfAStaleResponse(
        _ control: String, _ asked: String, _ after: Int64, _ isUsed: Bool
    ) {
        let freshness = Freshness(
            cacheControl: control, expires: nil, date: Self.date, age: nil, lastModified: nil,
            times: (Self.now, Self.now))
        #expect(freshness.mayBeUsedOnError(at: Self.now + after, cacheControl: asked) == isUsed)
    }

    @Test func aSecretInAVaryHeaderIsStoredAsAHash() {
        let request = DownloadRequest(
            url: "http://a.example/", headers: [("Authorization", "Bearer secret"), ("X-Api-Key", "hidden")])
        var configuration = DownloadConfiguration()
        let varied = configuration.varied(request, by: "Authorization, x-api-key ,Accept")
        #expect(varied?.contains("secret") == false && varied?.contains("hidden") == false)
        #expect(varied?.contains("x-api-key: ") == true)
        #expect(configuration.varied(request, by: "x, *") == nil)
        #expect(configuration.varied(DownloadRequest(url: "http://a.example/x@2"), by: nil) == "")
        let before = configuration.varied(request, by: "User-Agent")
        configuration.userAgent = "v"
        #expect(configuration.varied(request, by: "User-Agent") != before)
    }

    @Test func headersOfTheConfigurationVaryAResponseLikeThoseOfTheRequest() {
        var (request, configuration) = (DownloadRequest(url: "http://a.example/"), DownloadConfiguration())
        let plain = ["Accept", "X-Key", nil].map { configuration.varied(request, by: $0) }
        configuration.headers = [("accept", "image/avif"), ("X-Key", "1"), ("Authorization", "Bearer hidden")]
        let changed = ["Accept", "X-Key", nil].map { configuration.varied(request, by: $0) }
        for (plain, changed) in zip(plain, changed) { #expect(plain != changed) }
        #expect(configuration.isAuthorized(request))
        #expect(changed[2]?.contains("hidden") == false)
        let common = configuration.varied(request, by: "X-Key")
        request.headers = [("x-key", "1")]
        #expect(configuration.varied(request, by: "X-Key") == common)
        #expect(configuration.varied(request, by: "Cookie") != nil)
        request.cookieJar = 1
        #expect(configuration.varied(request, by: "Cookie") == nil)
    }

    @Test func aResponseToCredentialsVariesByTheCredentials() {
        func varied(_ url: String, _ secret: String? = nil) -> String? {
            DownloadConfiguration().varied(
                DownloadRequest(url: url, headers: secret.map { [("Authorization", $0)] } ?? []), by: nil)
        }
        let all = [
            varied("http://a.example/"), varied("http://a.example/", "one"), varied("http://a.example/", "two"),
            varied("http://ann:one@a.example/"),
        ]
        #expect(Set(all).count == 4)
        #expect(varied("http://a.example/?q=a@b") == varied("http://a.example/"))
    }

    @Test(arguments: [
        ("private, max-age=60", false, false), ("private=\"Set-Cookie\", max-age=60", true, false),
        ("max-age=60", true, false), ("public, max-age=60", true, true), ("s-maxage=60", true, true),
        ("max-age=60, must-revalidate", true, true),
    ])
    func aSharedCacheObeysPrivateAndPublic(_ control: String, _ isFresh: Bool, _ isForAuthorized: Bool) {
        let freshness = Freshness(
            cacheControl: control, expires: nil, date: Self.date, age: nil, lastModified: nil,
            times: (Self.now, Self.now))
        #expect((freshness.isFresh(at: Self.now), freshness.isForAuthorized) == (isFresh, isForAuthorized))
    }
}
