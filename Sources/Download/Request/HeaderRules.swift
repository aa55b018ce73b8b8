public import Core

/// The headers that a request may have. A header is refused if its text could begin a second header, or if it changes
/// the meaning of the answer or the place where the next request on the connection begins.
public enum HeaderRules {
    /// Headers that only the downloader sets, in lower case.
    private static let ours: Set<String> = [
        "connection", "content-length", "expect", "if-modified-since", "if-none-match", "if-range", "keep-alive",
        "proxy-connection", "range", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// - Throws: `delegate`, with a sentence that names the header and doesn't repeat its value.
    public static func check(_ headers: [(name: String, value: String)]) throws(Failure) {
        for header in headers {
            guard isToken(header.name) else {
                let name = header.name.isEmpty ? "without a name" : "named '\(header.name.prefix(100))'"
                throw Failure(
                    .delegate, "A header \(name) can't be sent: names are letters, digits and hyphens.")
            }
            guard !ours.contains(header.name.lowercased()) else {
                throw Failure(
                    .delegate, "The header \(header.name) can't be chosen: the worker sets it itself.")
            }
            try check(header.value, of: header.name)
        }
    }

    static func check(_ request: DownloadRequest) throws(Failure) {
        try check(request.headers)
        if let etag = request.etag { try check(etag, of: "If-None-Match") }
        if let date = request.lastModified { try check(date, of: "If-Modified-Since") }
    }

    static func check(_ value: String, of name: String) throws(Failure) {
        guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw Failure(
                .delegate,
                "The header \(name.prefix(100)) has a value that can't be sent: there is a control character in it.")
        }
    }

    /// RFC 9110, section 5.6.2.
    private static func isToken(_ name: String) -> Bool {
        let marks = Set("!#$%&'*+-.^_`|~".utf8)
        return !name.isEmpty
            && name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                    || marks.contains(byte)
            }
    }
}
