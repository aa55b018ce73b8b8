import ArgumentParser
import ContentCache
import Jobs
import SystemPackage

struct GetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Prints the path of a cached image.",
        discussion: """
            The file's bytes are checked before its path is printed. Exit code 1 when it is not cached.

            EXAMPLES:
              worker get https://example.com/a.jpg
              cp "$(worker get https://example.com/a.jpg --variant thumb)" thumb.webp
            """,
    )

    @OptionGroup var common: CommonOptions

    @Argument(help: "The URL, as it was enqueued.")
    var url: String

    @Option(help: "The name of the variant (original).")
    var variant = "original"

    func run() async throws {
        try await reportingErrors {
            let cache = try common.openCache()
            try await common.withStore { store in
                for rendition in try await store.renditions(ofURL: url, named: variant) {
                    guard let hash = BlobHash(rendition.blob) else { continue }
                    do {
                        _ = try cache.openVerified(hash)
                        return Terminal.print(cache.path(of: hash).string)
                    } catch let error as CacheError where error.code == .damaged {
                        try await store.forget(blobs: [hash.hex])
                        Terminal.error("worker: \(error.message) The next job that wants it makes it anew.")
                    }
                }
                Terminal.error("worker: \(variant) of \(Terminal.safe(url)) is not cached. See: worker explain URL")
                throw ExitCode.notFound
            }
        }
    }
}
