internal import Core
internal import Hashing
internal import Jobs
internal import Synchronization

/// The URLs that pages show, by handles that their buttons send back.
///
/// A page shows a URL without its credentials, and such a text names no entry of the blacklist and no pinned URL. So each
/// shown URL has a handle, made with a key of this process: it tells nothing about the parts that are hidden.
final class ShownURLs: Sendable {
    /// Pages show at most some 600 URLs with buttons.
    private static let most = 8_192

    private let redaction: Redaction
    private let key = (0..<SHA256.size).map { _ in UInt8.random(in: .min ... .max) }
    private let urls = Mutex(LRUCache<String, String>(countLimit: most))

    init(_ redaction: Redaction) { self.redaction = redaction }

    struct Shown: Encodable {
        let url: String
        let handle: String
    }

    func callAsFunction(_ url: String) -> Shown {
        Shown(url: redaction.shown(url), handle: handle(of: url))
    }

    func handle(of url: String) -> String {
        let handle = String(hexadecimal: SHA256.authenticationCode(of: Array(url.utf8), key: key))
        urls.withLock { $0.insert(url, for: handle) }
        return handle
    }

    /// - Returns: nil if this process has shown no such URL lately.
    func url(of handle: String) -> String? { urls.withLock { $0.value(handle) } }
}
