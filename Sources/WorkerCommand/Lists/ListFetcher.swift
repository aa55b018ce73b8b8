import Core
import Download
import Glibc
import Jobs
import Lists
import PrefetchWorker
import SystemPackage

/// Fetches lists by the download engine, under the same address guard and limits as pictures.
final class ListFetcher {
    /// Maximum sitemaps that indices may name: as many as the protocol allows in one index.
    static let maxSitemaps = 50_000
    static let maxDepth = 3
    private static let tries = 3

    /// A fetched list, and the address that answered in the end.
    struct Fetched {
        /// At its start.
        let file: FileDescriptor
        let address: String
        fileprivate let body: BodyFile
    }

    /// Maximum bytes of a list, after unpacking.
    let limit: Int64
    private let configuration: DownloadConfiguration
    private let folder: String
    private let redaction: Redaction
    private var downloader: Downloader?

    /// - Parameters:
    ///   - folder: for temporary files, which have no name.
    ///   - redaction: hides the secrets of addresses in messages.
    init(_ configuration: DownloadConfiguration, limit: Int64, folder: String, redaction: Redaction) {
        self.redaction = redaction
        self.limit = limit
        self.folder = folder
        var configuration = configuration
        configuration.maxBodyBytes = limit
        if !configuration.headers.contains(where: { $0.name.lowercased() == "accept" }) {
            configuration.headers.append(("Accept", "text/html, application/xml, text/csv, text/plain, */*;q=0.8"))
        }
        self.configuration = configuration
    }

    /// - Throws: ``ListMistake`` if it cannot be fetched.
    func fetch(_ address: String) async throws -> Fetched {
        let request = DownloadRequest(url: address)
        let downloader = try await start()
        var tries = 1
        while true {
            switch await downloader.download(request) {
            case .body(let body, let response):
                let file = try body.withDescriptor { file in
                    try file.seek(offset: 0, from: .start)
                    return file
                }
                return Fetched(file: file, address: response.finalURL, body: body)
            case .notModified, .shed(_):
                throw ListMistake("\(redaction.shown(address)) can't be fetched: its host is busy.")
            case .failed(let failure):
                guard case .retry = RetryPolicy(maxTries: Self.tries).decide(failure.failureClass, attempts: tries - 1)
                else { throw ListMistake("\(redaction.shown(address)) can't be fetched: \(failure.shown)") }
                tries += 1
                try await Task.sleep(for: .milliseconds(500))
            }
        }
    }

    private func start() async throws -> Downloader {
        if let downloader { return downloader }
        let folder = folder
        let made = try Downloader(
            configuration: configuration,
            makeFile: {
                let raw = open(folder, O_RDWR | O_CLOEXEC | CInt(__O_TMPFILE) | O_DIRECTORY, 0o600)
                guard raw >= 0 else { throw Errno(rawValue: errno) }
                return FileDescriptor(rawValue: raw)
            },
            inspect: { _ in .accept })
        downloader = made
        return made
    }

    func close() async { await downloader?.shutdown() }
}
