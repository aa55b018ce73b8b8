import ImageFiles
import Imaging
import Jobs
import Testing
import Variants

@testable import PrefetchWorker

@Suite("A job's plan", .timeLimit(.minutes(15)))
struct JobPlanTests {
    private func plan(_ variants: String?, _ options: String? = nil) throws(JobPlanError) -> JobPlan {
        try JobPlan(JobDefinition(id: 1, variants: variants, options: options, headers: [:], priority: 0, order: .fifo))
    }

    private func spec(_ text: String) throws -> VariantSpec { try #require(try VariantSpec.parseList(text).first) }

    @Test func `Variants and options are parsed once for all items`() throws {
        let plan = try plan("thumb=320x240,cover,webp,q80 small=64x", "retry-failed, discard-original")
        #expect(plan.variants.map(\.name) == ["thumb", "small"])
        #expect(plan.options == [.retryFailed, .discardOriginal])
        #expect(!plan.keepsOriginal)
    }

    @Test func `A job without variants and options keeps the original`() throws {
        for empty in [nil, "", "  \n"] {
            let plan = try plan(empty, empty)
            #expect(plan.variants.isEmpty)
            #expect(plan.keepsOriginal)
        }
    }

    static let wrong: [(variants: String?, options: String?, part: String)] = [
        ("thumb", nil, "thumb"), ("thumb=widexhigh", nil, "widexhigh"), ("a=10x b=0x", nil, "0x"),
        ("a=10x a=20x", nil, "two variants of the name 'a'"), ("{\"name\":\"a\"", nil, ""),
        (nil, "retry-faild", "Unknown option 'retry-faild'. Did you mean 'retry-failed'?"),
        (nil, "keep-original,discard-original", "exclude each other"),
        (nil, "from-cache-only from-loader-only", "exclude each other"),
    ]

    @Test(arguments: wrong)
    func `Wrong variants or options are an error with a sentence`(
        _ row: (variants: String?, options: String?, part: String)
    ) throws {
        let error = #expect(throws: JobPlanError.self) { _ = try plan(row.variants, row.options) }
        #expect(error?.message.contains(row.part) == true, "\(error?.message ?? "no error")")
        let new = NewJob(urls: ["https://a.example/"], variants: row.variants, options: row.options)
        let usage = #expect(throws: WorkerError.self) { try WorkerJobs.check(new) }
        #expect((usage?.code, usage?.message) == (.usage, error?.message))
    }

    static let badHeaders: [(name: String, value: String, part: String)] = [
        ("X-Key", "1\r\nHost: evil", "The header X-Key has a value that can't be sent"), ("X-Key", "a\u{7F}", "X-Key"),
        ("X\r\nY", "1", "A header named 'X Y' can't be sent"), ("", "1", "A header without a name can't be sent"),
        ("content-length", "3", "The header content-length can't be chosen: the worker sets it itself."),
        ("Transfer-Encoding", "chunked", "Transfer-Encoding"), ("Connection", "close", "Connection"),
        ("Range", "bytes=0-9", "Range"), ("If-Range", "\"1\"", "If-Range"), ("If-None-Match", "*", "If-None-Match"),
        ("If-Modified-Since", "yesterday", "If-Modified-Since"), ("Upgrade", "h2c", "Upgrade"), ("TE", "gzip", "TE"),
        ("Trailer", "X", "Trailer"), ("Expect", "100-continue", "Expect"),
    ]

    @Test(arguments: badHeaders)
    func `A header that can't be sent is refused with its job`(_ row: (name: String, value: String, part: String))
        throws
    {
        let job = NewJob(urls: ["https://a.example/"], headers: ["Accept": "image/webp", row.name: row.value])
        let error = #expect(throws: WorkerError.self) { try WorkerJobs.check(job) }
        #expect(error?.code == .usage)
        #expect(error?.message.contains(row.part) == true, "\(error?.message ?? "no error")")
    }

    @Test func `A job may set Host and any other header`() throws {
        let headers = ["Host": "b.example", "Authorization": "Basic a:b", "Cookie": "a=b", "Accept": "", "X": "a\tb é"]
        try WorkerJobs.check(NewJob(urls: [], headers: headers))
    }

    @Test func `A check before enqueuing covers the priority, too`() throws {
        try WorkerJobs.check(NewJob(urls: [], variants: "a=10x", priority: 100))
        let error = #expect(throws: WorkerError.self) { try WorkerJobs.check(NewJob(urls: [], priority: 101)) }
        #expect(error?.message == "The priority must be from -100 to 100, not 101.")
    }

    @Test func `A rendition's identity depends on source, spec and coder only`() throws {
        let base = RenditionIdentities(coder: "c").identity(of: try spec("a=10x20,webp,q80"), source: "s")
        #expect(base.count == 64)
        #expect(RenditionIdentities(coder: "c").identity(of: try spec("a=10x20,webp,q80"), source: "s") == base)
        #expect(RenditionIdentities(coder: "c").identity(of: try spec("other=10x20,webp,q80"), source: "s") == base)
        #expect(RenditionIdentities(coder: "c").identity(of: try spec("a=10x20,q80,webp"), source: "s") == base)
        var others: Set<String> = [base]
        for text in [
            "a=10x21,webp,q80", "a=10x20,webp,q81", "a=10x20,jpeg,q80", "a=10x20,cover,webp,q80", "a=20x10,webp,q80",
        ] {
            others.insert(RenditionIdentities(coder: "c").identity(of: try spec(text), source: "s"))
        }
        others.insert(RenditionIdentities(coder: "c").identity(of: try spec("a=10x20,webp,q80"), source: "t"))
        others.insert(RenditionIdentities(coder: "d").identity(of: try spec("a=10x20,webp,q80"), source: "s"))
        #expect(others.count == 8)
    }
}
