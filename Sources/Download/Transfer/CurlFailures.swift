import CCurl
import Core

extension FailureClass {
    /// The failure class of a libcurl error. See https://curl.se/libcurl/c/libcurl-errors.html
    ///
    /// - Parameter inHeaders: whether the final response's headers had not ended.
    /// - Returns: nil for an error of the program or the machine.
    init?(curl code: CURLcode, inHeaders: Bool) {
        let found: FailureClass? =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .dns
            case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY: .connect
            case CURLE_OPERATION_TIMEDOUT: .timeout
            // The content coding is broken, but the body may be complete on the server: one fresh download is
            // worthwhile.
            case CURLE_BAD_CONTENT_ENCODING: .truncated
            // An interrupted body is a failure of the network, like a connection that ends before it.
            case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_HTTP2,
                CURLE_HTTP2_STREAM:
                .connectionLost
            // The answer is not HTTP. UNSUPPORTED_PROTOCOL is libcurl's error for HTTP/0.9, since schemes were checked
            // before. Crashing or overloaded servers answer like this, so it is tried again.
            case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP_RETURNED_ERROR: .connectionLost
            // The callback refused bytes without a reason of its own: they belong to a protocol that was not requested
            // (101).
            case CURLE_WRITE_ERROR: .connectionLost
            case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_SHUTDOWN_FAILED, CURLE_USE_SSL_FAILED:
                .tlsHandshake
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
                CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CRL_BADFILE:
                .tlsCertificate
            case CURLE_URL_MALFORMAT: .invalidURL
            case CURLE_FILESIZE_EXCEEDED: .tooLarge
            // libcurl 7.88 reports this for a header line of more than 100 KiB.
            case CURLE_OUT_OF_MEMORY where inHeaders: .tooLarge
            // From 8.6 on it is CURLE_TOO_LARGE, which older headers don't know.
            case CURLcode(rawValue: 100): .tooLarge
            default: nil
            }
        guard let found else { return nil }
        self = found
    }
}

extension Failure {
    /// An error of the program or the machine; it does not count against the host, and is tried again.
    static func internalFault(_ message: String) -> Failure {
        var failure = Failure(.connectionLost, message)
        failure.hasAsked = false
        return failure
    }
}
