internal import CCurl
internal import Glibc

// Sets libcurl's options for a request.
//
// See https://curl.se/libcurl/c/curl_easy_setopt.html for the options.
extension HTTPExchange {
    func configure(_ settings: HTTPClient.Settings) throws(ExchangeFailure) {
        try set(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(errorText))
        try set(CURLOPT_PRIVATE, Unmanaged.passUnretained(self).toOpaque())
        try set(CURLOPT_URL, request.url)
        try set(CURLOPT_USERAGENT, settings.agent)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        if let bundle = settings.authorities { try set(CURLOPT_CAINFO, bundle) }
        if request.avoidsProxy { try set(CURLOPT_NOPROXY, "*") }
        for (option, value) in [
            (CURLOPT_NOSIGNAL, 1), (CURLOPT_NOPROGRESS, 1), (CURLOPT_FOLLOWLOCATION, 0), (CURLOPT_TCP_KEEPALIVE, 1),
            // Ending a transfer doesn't wait for a resolver that doesn't answer.
            (CURLOPT_QUICK_EXIT, 1),
            // The path was signed as it is.
            (CURLOPT_PATH_AS_IS, 1), (CURLOPT_SUPPRESS_CONNECT_HEADERS, 1),
            // Requests share connections one after another; S3 has no HTTP/2.
            (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)),
            (CURLOPT_SSL_VERIFYPEER, 1), (CURLOPT_SSL_VERIFYHOST, 2),
            (CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2)),
            (CURLOPT_CONNECTTIMEOUT_MS, request.timeouts.connect), (CURLOPT_TIMEOUT_MS, request.timeouts.whole),
            (CURLOPT_LOW_SPEED_LIMIT, HTTPRequest.Timeouts.slowest), (CURLOPT_LOW_SPEED_TIME, request.timeouts.silence),
            (CURLOPT_BUFFERSIZE, 128 << 10), (CURLOPT_UPLOAD_BUFFERSIZE, 128 << 10),
        ] {
            try check(ccurl_set_long(easy, option, value))
        }
        try setHeaders()
        try setMethod()
        try setCallbacks()
    }

    private func setHeaders() throws(ExchangeFailure) {
        // Without `Expect:` libcurl would wait for a "100 Continue" before larger bodies.
        for line in request.headers + ["Expect:"] {
            guard let longer = curl_slist_append(lines, line) else {
                throw ExchangeFailure(kind: .transient, message: "libcurl has no memory")
            }
            lines = longer
        }
        try set(CURLOPT_HTTPHEADER, UnsafeMutableRawPointer(lines))
    }

    private func setMethod() throws(ExchangeFailure) {
        let size: Int64? =
            switch request.body {
            case .none: nil
            case .bytes(let bytes): Int64(bytes.count)
            case .file(_, let size): size
            }
        if let size {
            try check(ccurl_set_long(easy, CURLOPT_UPLOAD, 1))
            try check(ccurl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(size)))
        }
        if request.method == "HEAD" {
            try check(ccurl_set_long(easy, CURLOPT_NOBODY, 1))
        } else {
            try set(CURLOPT_CUSTOMREQUEST, request.method)
        }
    }

    private func setCallbacks() throws(ExchangeFailure) {
        try check(
            ccurl_set_data_callback(easy, CURLOPT_READFUNCTION) { bytes, size, count, exchange in
                HTTPExchange.of(exchange)?.read(UnsafeMutableRawBufferPointer(start: bytes, count: size * count)) ?? 0
            })
        try check(
            ccurl_set_data_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, exchange in
                HTTPExchange.of(exchange)?.take(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
            })
        try check(
            ccurl_set_data_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, exchange in
                HTTPExchange.of(exchange)?.takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
            })
        // A kept connection may turn out to be closed when half of a body is sent; libcurl begins anew on another one.
        try check(
            ccurl_set_seek_callback(easy) { exchange, offset, origin in
                guard let exchange = HTTPExchange.of(exchange), origin == SEEK_SET, offset >= 0 else {
                    return CInt(CURL_SEEKFUNC_FAIL)
                }
                exchange.sent = Int64(offset)
                return CInt(CURL_SEEKFUNC_OK)
            })
        // Programs that are started meanwhile must not inherit connections, which would stay open for as long as they
        // run.
        try check(
            ccurl_set_socket_callback(easy) { _, _, address in
                guard let address = address?.pointee else { return ccurl_bad_socket() }
                return socket(
                    address.family, address.socktype | CInt(bitPattern: SOCK_CLOEXEC.rawValue), address.protocol)
            })
        for option in [CURLOPT_READDATA, CURLOPT_WRITEDATA, CURLOPT_HEADERDATA, CURLOPT_SEEKDATA] {
            try set(option, Unmanaged.passUnretained(self).toOpaque())
        }
    }

    private func set(_ option: CURLoption, _ value: String) throws(ExchangeFailure) {
        try check(ccurl_set_text(easy, option, value))
    }

    private func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer?) throws(ExchangeFailure) {
        try check(ccurl_set_pointer(easy, option, value))
    }

    private func check(_ code: CURLcode) throws(ExchangeFailure) {
        guard code != CURLE_OK else { return }
        throw ExchangeFailure(
            kind: .unusable, message: "libcurl does not take the request (\(String(cString: curl_easy_strerror(code))))"
        )
    }
}
