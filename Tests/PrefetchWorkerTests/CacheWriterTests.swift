import ContentCache
import Core
import Jobs
import Logging
import PrefetchWorker
import SystemPackage
import TestSupport
import Testing

@Suite("Pictures stored by a program", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct CacheWriterTests {
    private func write<R: Sendable>(_ place: Workplace, _ body: (CacheWriter) async throws -> R) async throws -> R {
        let cache = try ContentCache(directory: FilePath(place.configuration.cache))
        try await CacheOwnership.check(place.store, cache)
        return try await CacheWriter.run(
            place.configuration, store: place.store, cache: cache,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, body)
    }

    @Test func `Bytes in memory become the source of a URL`() async throws {
        try await withWorkplace { place in
            let url = "https://a.example/1.png"
            let picture = try await write(place) {
                try await $0.put(NewPicture(bytes: Pictures.png, url: url + "#part")).get()
            }
            #expect(picture.change == .stored && picture.format == "png" && picture.variant == "original")
            let source = try #require(try await place.store.cache.source(key: url))
            #expect(source.hash == picture.blob && source.isKept && source.etag == nil && source.frames == 1)
            let job = try await place.enqueue([url], variants: "v=8x,png")
            try await place.drain()
            #expect(try await place.progress(job).cached == 1)
        }
    }

    @Test func `Pictures of a sequence are stored in groups, and each refused picture is reported`() async throws {
        try await withWorkplace { place in
            let pictures = AsyncStream<NewPicture> { stream in
                for number in 0..<40 {
                    let bytes = number == 7 ? Array("no picture".utf8) : [Pictures.png, Pictures.jpeg][number % 2]
                    stream.yield(NewPicture(bytes: bytes, url: "https://a.example/\(number)"))
                }
                stream.finish()
            }
            var refused: [String] = []
            let counts = try await write(place) { writer in
                try await writer.put(all: pictures) { picture, result, _ in
                    if case .failure(let failure) = result { refused.append("\(picture.url) \(failure.failureClass)") }
                }
            }
            #expect(counts.stored == 39 && counts.failed == 1 && counts.all == 40)
            #expect(refused == ["https://a.example/7 not-an-image"])
            #expect(try await place.store.cache.totals().blobs == 2)
            let again = try await write(place) { try await $0.put(all: pictures) }
            #expect(again.all == 0)
        }
    }

    @Test func `A trial stores no picture`() async throws {
        try await withWorkplace { place in
            let cache = try ContentCache(directory: FilePath(place.configuration.cache))
            try await CacheOwnership.check(place.store, cache)
            let url = "https://a.example/1.png"
            let picture = try await CacheWriter.run(
                place.configuration, store: place.store, cache: cache, isTrial: true,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            ) { try await $0.judge(NewPicture(bytes: Pictures.png, url: url)).get() }
            #expect(picture.change == .stored)
            #expect(try await place.store.cache.source(key: url) == nil)
            #expect(try await place.store.cache.totals().blobs == 0)
        }
    }

    @Test(arguments: [
        ("{path}", "a b/c.d.png", "a%20b/c.d.png"), ("{folder}|{name}", "x/y/z.png", "x/y|z.png"),
        ("{stem}.{extension}", "x/.hidden", ".hidden."), ("{stem}-{extension}", "a.tar.gz", "a.tar-gz"),
        ("?f={path}", "a/b c&d", "?f=a/b%20c%26d"), ("{name}", "caf\u{E9}", "caf%C3%A9"),
    ])
    func `A template encodes characters that a URL may not have`(_ text: String, _ path: String, _ url: String) throws {
        #expect(try URLTemplate("https://a/" + text).url(path: Array(path.utf8)) == "https://a/" + url)
        #expect(try URLTemplate("https://a/{name}").url(path: [0xFF, 0x0A]) == "https://a/%FF%0A")
    }
}
