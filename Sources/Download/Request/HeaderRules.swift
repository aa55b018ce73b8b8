/// What may stand in a request's headers: nothing that could end the header and begin another.
enum HeaderRules {
    static func check(_ request: DownloadRequest) throws(DownloadFailure) {
        try check(request.headers)
        if let etag = request.etag { try check(etag, of: "If-None-Match") }
        if let date = request.lastModified { try check(date, of: "If-Modified-Since") }
    }

    static func check(_ headers: [(name: String, value: String)]) throws(DownloadFailure) {
        for header in headers {
            guard isToken(header.name) else {
                throw DownloadFailure(.internalError, "A header of the request has a name that cannot be sent.")
            }
            try check(header.value, of: header.name)
        }
    }

    private static func check(_ value: String, of name: String) throws(DownloadFailure) {
        guard value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw DownloadFailure(.internalError, "The header \(name) of the request has a value that cannot be sent.")
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
