internal import CCurl
internal import Core
internal import Glibc
internal import Hashing
internal import SystemPackage

/// A request on its way: libcurl's handle, and what its callbacks read and write. Only the client's thread uses it.
final class HTTPExchange {
    let id: UInt64
    let easy: UnsafeMutableRawPointer
    let request: HTTPRequest
    let errorText: UnsafeMutablePointer<CChar>
    /// The headers' lines, which libcurl reads until the end.
    var lines: UnsafeMutablePointer<curl_slist>?
    private var answer = HTTPAnswer()
    private var headerBytes = 0
    /// Bytes of the request's body; libcurl may go back to the first.
    var sent: Int64 = 0
    private var hasher: SHA256?
    /// Why a callback has ended the transfer.
    private var failure: ExchangeFailure?

    private static let maxHeaderBytes = 256 << 10

    init(_ id: UInt64, _ request: HTTPRequest, settings: HTTPClient.Settings) throws(ExchangeFailure) {
        guard let easy = curl_easy_init() else {
            throw ExchangeFailure(kind: .transient, message: "libcurl has no memory")
        }
        self.id = id
        self.easy = easy
        self.request = request
        if request.expectedHash != nil { hasher = SHA256() }
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        // From here on all properties are set, so `deinit` frees everything even if one of these calls throws.
        try configure(settings)
        try emptyOutput()
    }

    deinit {
        curl_easy_cleanup(easy)
        curl_slist_free_all(lines)
        errorText.deallocate()
    }

    static func of(_ pointer: UnsafeMutableRawPointer?) -> HTTPExchange? {
        pointer.map { Unmanaged<HTTPExchange>.fromOpaque($0).takeUnretainedValue() }
    }

    // MARK: - Callbacks

    func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        switch request.body {
        case .none: return 0
        case .bytes(let bytes):
            let part = bytes.dropFirst(Int(sent)).prefix(buffer.count)
            buffer.copyBytes(from: part)
            sent += Int64(part.count)
            return part.count
        case .file(let file, let size):
            let count = Int(min(Int64(buffer.count), size - sent))
            guard count > 0 else { return 0 }
            do {
                let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
                let read = try file.read(fromAbsoluteOffset: sent, into: part)
                guard read > 0 else {
                    return abort(
                        ExchangeFailure(kind: .file(nil), message: "the file ends before its \(size) bytes"))
                }
                sent += Int64(read)
                return read
            } catch {
                return abort(Self.failure(error, "the file can't be read"))
            }
        }
    }

    private func abort(_ reason: ExchangeFailure) -> Int {
        failure = reason
        return Int(CURL_READFUNC_ABORT)
    }

    func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        let status = ccurl_get_long(easy, CURLINFO_RESPONSE_CODE)
        let offset = answer.size
        answer.size += Int64(bytes.count)
        guard (200..<300).contains(status) else {
            guard answer.size <= 1 << 24 else {
                failure = ExchangeFailure(
                    kind: .transient, message: "it answered \(status), with a body of more than 16 MiB")
                return 0
            }
            answer.body += bytes.prefix(max(0, HTTPAnswer.maxErrorBytes - answer.body.count))
            return bytes.count
        }
        guard answer.size <= request.maxBytes, announcedSize <= request.maxBytes else {
            failure = ExchangeFailure(kind: .tooLarge, message: "it has more than \(request.maxBytes) bytes")
            return 0
        }
        hasher?.update(bytes)
        guard let output = request.output else {
            answer.body += bytes
            return bytes.count
        }
        do {
            try output.writeAll(toAbsoluteOffset: offset, bytes)
            return bytes.count
        } catch {
            failure = Self.failure(error, "the file can't be written")
            return 0
        }
    }

    func takeHeader(_ bytes: UnsafeRawBufferPointer) -> Int {
        headerBytes += bytes.count
        guard headerBytes <= Self.maxHeaderBytes else {
            failure = ExchangeFailure(kind: .transient, message: "its headers have more than 256 KiB")
            return 0
        }
        let line = String(decoding: bytes, as: UTF8.self)
        if line.hasPrefix("HTTP/") {
            // Another answer begins: a "100 Continue" came before.
            answer.headers = [:]
        } else if let colon = line.firstIndex(of: ":") {
            answer.headers[line[..<colon].lowercased()] = String(trimming: line[line.index(after: colon)...])
        }
        return bytes.count
    }

    /// Empties the output: an earlier try may have written to it.
    private func emptyOutput() throws(ExchangeFailure) {
        guard let output = request.output else { return }
        do {
            try output.resize(to: 0, retryOnInterrupt: true)
            try output.seek(offset: 0, from: .start)
        } catch {
            throw Self.failure(error, "the file can't be emptied")
        }
    }

    private static func failure(_ error: any Error, _ what: String) -> ExchangeFailure {
        let errno = error as? Errno ?? .ioError
        return ExchangeFailure(kind: .file(errno), message: "\(what): \(errno)")
    }

    // MARK: - The end

    func end(_ code: CURLcode) -> Result<HTTPAnswer, ExchangeFailure> {
        answer.status = ccurl_get_long(easy, CURLINFO_RESPONSE_CODE)
        if let failure { return .failure(failure) }
        guard code == CURLE_OK else { return .failure(explain(code)) }
        if answer.isGood, !isDelimited {
            return .failure(ExchangeFailure(kind: .transient, message: "its answer does not say where it ends"))
        }
        if answer.isGood, let hasher, String(hexadecimal: hasher.finish()) != request.expectedHash {
            return .failure(ExchangeFailure(kind: .wrongBytes, message: "the bytes have another hash"))
        }
        return .success(answer)
    }

    /// Negative if there is none, or none that is a number.
    private var announcedSize: Int64 { Int64(ccurl_get_offset(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)) }

    /// A body that ends with its connection may have broken off.
    private var isDelimited: Bool {
        request.method == "HEAD" || answer.status == 204 || announcedSize == answer.size
            || answer.headers["transfer-encoding"]?.lowercased() == "chunked"
    }

    private func explain(_ code: CURLcode) -> ExchangeFailure {
        let detail = String(cString: errorText)
        let message = detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
        let kind: ExchangeFailure.Kind =
            switch code {
            case CURLE_URL_MALFORMAT: .unusable
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR,
                CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ENGINE_INITFAILED:
                .certificate
            default: .transient
            }
        return ExchangeFailure(kind: kind, message: message)
    }
}

extension String {
    /// Without the white space around it.
    init(trimming text: Substring) {
        let start = text.drop { $0.isWhitespace }
        self.init(start[..<(start.lastIndex { !$0.isWhitespace }.map { start.index(after: $0) } ?? start.startIndex)])
    }
}
