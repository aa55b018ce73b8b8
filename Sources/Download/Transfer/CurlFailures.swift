import CCurl
import Core

extension FailureClass {
    /// The class of a transfer that libcurl gave up. See https://curl.se/libcurl/c/libcurl-errors.html
    ///
    /// - Parameter inHeaders: whether the final response's headers were still to come.
    /// - Returns: nil for a fault of the program or the machine.
    init?(curl code: CURLcode, inHeaders: Bool) {
        let found: FailureClass? =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .dns
            case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY: .connect
            case CURLE_OPERATION_TIMEDOUT: .timeout
            // A content coding that is broken, of a body that may be whole: worth one more fresh download.
            case CURLE_BAD_CONTENT_ENCODING: .truncated
            // A body that breaks off is the network's fault, like a connection that ends before it.
            case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_HTTP2,
                CURLE_HTTP2_STREAM:
                .connectionLost
            // The answer is not HTTP; UNSUPPORTED_PROTOCOL is how curl refuses HTTP/0.9, as schemes were checked
            // before. A crashing or overloaded server does that as well, so it is tried again.
            case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP_RETURNED_ERROR: .connectionLost
            // The body was refused without a reason: bytes in a protocol that wasn't asked for (101).
            case CURLE_WRITE_ERROR: .connectionLost
            case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_SHUTDOWN_FAILED, CURLE_USE_SSL_FAILED:
                .tlsHandshake
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS,
                CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CRL_BADFILE:
                .tlsCertificate
            case CURLE_URL_MALFORMAT: .invalidURL
            case CURLE_FILESIZE_EXCEEDED: .tooLarge
            // How libcurl 7.88 says that one header line is longer than its 100 KiB.
            case CURLE_OUT_OF_MEMORY where inHeaders: .tooLarge
            default: nil
            }
        guard let found else { return nil }
        self = found
    }
}

extension Failure {
    /// A fault of the program or the machine, which says nothing of the host. It is tried again.
    static func internalFault(_ message: String) -> Failure {
        var failure = Failure(.connectionLost, message)
        failure.hasAsked = false
        return failure
    }
}
