import CCurl
import Core
import Glibc

/// A URL that can be sent: absolute, http or https, with a host, percent-encoded, with its credentials removed.
struct DownloadURL: Sendable, Hashable {
    /// Without credentials and fragment, the host in ASCII. Safe to log.
    let text: String
    let origin: Origin
    let credentials: Credentials?

    /// The scheme, host and port to which a job's own headers may be sent.
    struct Origin: Sendable, Hashable {
        let scheme: String
        /// Lower case, without a trailing dot; an IPv6 address keeps its brackets.
        let host: String
        let port: String
    }

    struct Credentials: Sendable, Hashable {
        let user: String
        let password: String
    }

    var host: String { origin.host }

    /// - Throws: `invalidURL`, with a sentence that names the mistake and does not repeat the URL.
    init(_ text: String, maxBytes: Int) throws(Failure) {
        let bytes = Array(text.utf8).trimmingSpaces()
        try self.init(bytes, relativeTo: nil, maxBytes: maxBytes)
    }

    /// Resolves the raw bytes of a `Location` header, which may be relative and need not be UTF-8.
    init(location: [UInt8], relativeTo base: DownloadURL, maxBytes: Int) throws(Failure) {
        try self.init(location, relativeTo: base.text, maxBytes: maxBytes)
    }

    private init(_ bytes: [UInt8], relativeTo base: String?, maxBytes: Int) throws(Failure) {
        guard bytes.count <= maxBytes else {
            throw Failure(.invalidURL, "The URL is longer than \(maxBytes) bytes.")
        }
        guard !bytes.contains(0) else { throw Failure(.invalidURL, "The URL contains a NUL byte.") }
        let parts = try URLParts()
        if let base { try parts.set(CURLUPART_URL, Array(base.utf8)) }
        try parts.set(CURLUPART_URL, bytes)
        try self.init(parts, maxBytes: maxBytes)
    }

    private init(_ parts: borrowing URLParts, maxBytes: Int) throws(Failure) {
        let scheme = try parts.get(CURLUPART_SCHEME).lowercased()
        guard scheme == "http" || scheme == "https" else {
            throw Failure(.invalidURL, "The URL's scheme is neither http nor https.")
        }
        var host = try parts.get(CURLUPART_HOST, asASCII: true).lowercased()
        if host.hasSuffix(".") { host.removeLast() }
        guard !host.isEmpty else { throw Failure(.invalidURL, "The URL has no host.") }
        let user = parts.find(CURLUPART_USER)
        let password = parts.find(CURLUPART_PASSWORD)
        credentials = user == nil && password == nil ? nil : Credentials(user: user ?? "", password: password ?? "")
        for part in [CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_FRAGMENT] { try parts.clear(part) }
        origin = Origin(scheme: scheme, host: host, port: try parts.get(CURLUPART_PORT))
        text = try parts.get(CURLUPART_URL, asASCII: true)
        // Percent-encoding can triple the length.
        guard text.utf8.count <= maxBytes else {
            throw Failure(.invalidURL, "The URL is longer than \(maxBytes) bytes once it is encoded.")
        }
    }
}

/// The owner of a `CURLU` handle. See https://curl.se/libcurl/c/libcurl-url.html
private struct URLParts: ~Copyable {
    private let handle: OpaquePointer

    init() throws(Failure) {
        guard let handle = curl_url() else { throw Failure.internalFault("There is no memory for a URL.") }
        self.handle = handle
    }

    deinit { curl_url_cleanup(handle) }

    func set(_ part: CURLUPart, _ bytes: [UInt8]) throws(Failure) {
        // Browsers send a space as %20; without ALLOW_SPACE the parser would refuse it before it is encoded.
        let flags = UInt32(CURLU_URLENCODE | CURLU_ALLOW_SPACE)
        let code = (bytes + [0]).withUnsafeBytes { curl_url_set(handle, part, $0.baseAddress, flags) }
        try Self.check(code)
    }

    func clear(_ part: CURLUPart) throws(Failure) {
        try Self.check(curl_url_set(handle, part, nil, 0))
    }

    func get(_ part: CURLUPart, asASCII: Bool = false) throws(Failure) -> String {
        // Always returns the port, and the URL without a default port.
        let port = part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : CURLU_NO_DEFAULT_PORT
        let flags = port | (asASCII ? CURLU_PUNYCODE : 0)
        var text: UnsafeMutablePointer<CChar>?
        let code =
            asASCII
            ? withUTF8Locale { curl_url_get(handle, part, &text, UInt32(flags)) }
            : curl_url_get(handle, part, &text, UInt32(flags))
        defer { curl_free(text) }
        try Self.check(code)
        return text.map { String(cString: $0) } ?? ""
    }

    /// A part that may be missing, decoded.
    func find(_ part: CURLUPart) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        defer { curl_free(text) }
        guard curl_url_get(handle, part, &text, UInt32(CURLU_URLDECODE)) == CURLUE_OK else { return nil }
        return text.map { String(cString: $0) }
    }

    private static func check(_ code: CURLUcode) throws(Failure) {
        guard code != CURLUE_OK else { return }
        let reason =
            switch code {
            case CURLUE_BAD_SCHEME: "it has no scheme, such as https://"
            case CURLUE_UNSUPPORTED_SCHEME: "its scheme is not fetched"
            case CURLUE_BAD_PORT_NUMBER: "its port is no number from 0 to 65535"
            case CURLUE_NO_HOST, CURLUE_BAD_HOSTNAME: "it has no host"
            default: (curl_url_strerror(code).map { String(cString: $0) } ?? "error \(code.rawValue)").lowercased()
            }
        throw Failure(.invalidURL, "The URL cannot be read: \(reason).")
    }
}

/// libidn2 reads host names in the thread's character set, which is ASCII unless setlocale was called.
private func withUTF8Locale<R>(_ body: () -> R) -> R {
    guard let locale = UTF8Locale.handle else { return body() }
    let previous = uselocale(locale)
    defer { uselocale(previous) }
    return body()
}

private enum UTF8Locale {
    /// Made once and never freed or changed, so threads may share it.
    nonisolated(unsafe) static let handle = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil)
}

/// Normalises a host's name for limits and blocks: lower case, ASCII, no brackets, no trailing dot.
enum HostName {
    static func normal(_ host: String) -> String {
        guard host.utf8.allSatisfy({ $0 < 0x80 }) else {
            // Best effort: text that is no host name is returned unchanged; no request goes to it.
            return (try? DownloadURL("http://\(host)/", maxBytes: 8_192).host) ?? host
        }
        var name = Substring(host.lowercased())
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        if name.hasSuffix(".") { name = name.dropLast() }
        return String(name)
    }
}
