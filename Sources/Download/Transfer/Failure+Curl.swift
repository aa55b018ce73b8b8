import CCurl

extension DownloadFailure.Code {
    /// The class of a transfer that libcurl gave up. See https://curl.se/libcurl/c/libcurl-errors.html
    ///
    /// - Parameter inHeaders: whether the final response's headers were still to come.
    init(curl code: CURLcode, inHeaders: Bool) {
        self =
            switch code {
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .dns
            case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY: .connect
            case CURLE_OPERATION_TIMEDOUT: .timeout
            // Before there was a body, it is the connection that ended.
            case CURLE_PARTIAL_FILE: inHeaders ? .connectionLost : .truncated
            // A content coding that breaks off or is broken: worth one more fresh download, like a short body.
            case CURLE_BAD_CONTENT_ENCODING: .truncated
            case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_HTTP2, CURLE_HTTP2_STREAM: .connectionLost
            // What came is not HTTP; UNSUPPORTED_PROTOCOL is how curl refuses HTTP/0.9, as schemes were checked before.
            // A crashing or overloaded server does that as well, so it is tried again.
            case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP_RETURNED_ERROR: .connectionLost
            // We didn't take what came, and gave no reason: bytes in a protocol that nobody had asked for (101).
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
            default: .internalError
            }
    }
}
