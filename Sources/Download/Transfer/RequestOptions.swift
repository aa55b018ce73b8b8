import CCurl
import Core

extension EasyHandle {
    /// Sets every option of one hop. No option of an earlier hop or request stays: the options of an unusual request
    /// are reset before the next one, and options that differ between requests are set each time.
    func prepare(_ transfer: Transfer) throws(OptionError) {
        let isUsual = transfer.isUsual
        if !isUsual || !isSetUp {
            try reset()
            try setCommonOptions(transfer.configuration)
            try setSecurity(transfer)
            try setCallbacks()
        }
        isSetUp = false
        forgetError()
        try setContext(transfer)
        try set(CURLOPT_URL, transfer.hop.text)
        if let authorization = transfer.hopAuthorization {
            try set(CURLOPT_HTTPAUTH, authorization.scheme == .basic ? ccurl_auth_basic() : ccurl_auth_digest())
            try set(CURLOPT_USERNAME, authorization.credentials.user)
            try set(CURLOPT_PASSWORD, authorization.credentials.password)
        }
        // Prefers another stream on a connection to another connection. Only TLS negotiates the protocol at once;
        // without it the other requests would wait for the first answer.
        try set(CURLOPT_PIPEWAIT, transfer.hop.origin.scheme == "https" ? 1 : 0)
        if let time = transfer.queued.request.timeouts.connect {
            try set(CURLOPT_CONNECTTIMEOUT_MS, Int(time.milliseconds))
        }
        if let jar = transfer.jar { try use(jar) }
        // A range counts the bytes as they are sent, so they must come without a content coding.
        if transfer.isResuming { try Self.check(ccurl_set_text(pointer, CURLOPT_ACCEPT_ENCODING, nil)) }
        if let body = transfer.queued.request.body { try post(body) }
        if transfer.usesOwnConnection {
            try set(CURLOPT_FRESH_CONNECT, 1)
            try set(CURLOPT_FORBID_REUSE, 1)
        }
        try set(headers: transfer.hopHeaders)
        isSetUp = isUsual
    }

    /// libcurl copies the body.
    private func post(_ body: [UInt8]) throws(OptionError) {
        try set(CURLOPT_POSTFIELDSIZE, body.count)
        try Self.check(
            body.withUnsafeBytes {
                ccurl_set_pointer(pointer, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: $0.baseAddress))
            },
            CURLOPT_COPYPOSTFIELDS)
    }

    private func setCommonOptions(_ configuration: DownloadConfiguration) throws(OptionError) {
        try set(CURLOPT_NOSIGNAL, 1)
        // Removing a transfer must not wait for a slow name server: its resolver thread ends by itself.
        try set(CURLOPT_QUICK_EXIT, 1)
        // Best effort: a handle that ended on a shared or failed connection still has its buffer, and libcurl 7.88 does
        // not allow setting its size again. The buffer then keeps its size.
        try? set(CURLOPT_BUFFERSIZE, 256 << 10)
        try set(CURLOPT_CONNECTTIMEOUT_MS, Int(configuration.connectTimeout.milliseconds))
        // ContentDecoder decodes bodies, since it also checks that they are complete.
        try set(CURLOPT_ACCEPT_ENCODING, ContentDecoder.accepted)
        try set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        try set(CURLOPT_USERAGENT, configuration.userAgent)
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS)
        try set(CURLOPT_DNS_CACHE_TIMEOUT, Int(configuration.nameLifetime.components.seconds))
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        // An empty text, unlike nil, makes libcurl ignore http_proxy and no_proxy in the environment.
        try set(CURLOPT_PROXY, configuration.proxy ?? "")
        try set(CURLOPT_NOPROXY, "")
    }

    private func setSecurity(_ transfer: Transfer) throws(OptionError) {
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        if let caFile = transfer.configuration.caFile { try set(CURLOPT_CAINFO, caFile) }
        if transfer.queued.request.allowInvalidCertificates {
            try set(CURLOPT_SSL_VERIFYPEER, 0)
            try set(CURLOPT_SSL_VERIFYHOST, 0)
        }
    }

    private func setCallbacks() throws(OptionError) {
        try Self.check(ccurl_set_data_callback(pointer, CURLOPT_HEADERFUNCTION, receiveHeaderLine))
        try Self.check(ccurl_set_data_callback(pointer, CURLOPT_WRITEFUNCTION, receiveBodyBytes))
        try Self.check(ccurl_set_socket_callback(pointer, openSocket))
        try Self.check(ccurl_set_request_callback(pointer, checkConnection))
    }

    private func setContext(_ transfer: Transfer) throws(OptionError) {
        // Unretained: the loop keeps a transfer while its handle is in the multi handle.
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        try set(CURLOPT_PRIVATE, context)
        try set(CURLOPT_HEADERDATA, context)
        try set(CURLOPT_WRITEDATA, context)
        try set(CURLOPT_OPENSOCKETDATA, context)
        try set(CURLOPT_PREREQDATA, context)
    }
}

private func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer? {
    context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
}

/// https://curl.se/libcurl/c/CURLOPT_HEADERFUNCTION.html: returning any other number than the given one ends the
/// transfer.
private func receiveHeaderLine(
    bytes: UnsafeMutablePointer<CChar>?, size: Int, count: Int, context: UnsafeMutableRawPointer?,
) -> Int {
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer(context)?.receive(header: line) == true ? line.count : -1
}

/// https://curl.se/libcurl/c/CURLOPT_WRITEFUNCTION.html
private func receiveBodyBytes(
    bytes: UnsafeMutablePointer<CChar>?, size: Int, count: Int, context: UnsafeMutableRawPointer?,
) -> Int {
    let chunk = UnsafeRawBufferPointer(start: bytes, count: size * count)
    let receiver = transfer(context)
    receiver?.bodyBytes += Int64(chunk.count)
    switch receiver?.receive(body: chunk) {
    case .goOn: return chunk.count
    case .pause:
        // https://curl.se/libcurl/c/CURLOPT_WRITEFUNCTION.html: curl_easy_pause delivers the same bytes again.
        receiver?.bodyBytes -= Int64(chunk.count)
        return Int(ccurl_write_pause())
    case .stop, nil: return -1
    }
}

/// https://curl.se/libcurl/c/CURLOPT_OPENSOCKETFUNCTION.html: after a bad socket libcurl tries the host's next address.
private func openSocket(
    context: UnsafeMutableRawPointer?, purpose: curlsocktype, address: UnsafeMutablePointer<curl_sockaddr>?,
) -> curl_socket_t {
    guard let address else { return ccurl_bad_socket() }
    return transfer(context)?.openSocket(address) ?? ccurl_bad_socket()
}

/// https://curl.se/libcurl/c/CURLOPT_PREREQFUNCTION.html: called before each request, on reused connections too.
private func checkConnection(
    context: UnsafeMutableRawPointer?, remote: UnsafeMutablePointer<CChar>?, local: UnsafeMutablePointer<CChar>?,
    remotePort: CInt, localPort: CInt,
) -> CInt {
    let isAllowed = transfer(context)?.mayUseConnection(
        to: remote.map { String(cString: $0) } ?? "", localPort: localPort, remotePort: remotePort)
    return isAllowed == true ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}
