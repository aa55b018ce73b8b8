import CCurl
import Core
import Glibc

// The outcome of a transfer after libcurl has ended it.
extension Transfer {
    enum End {
        case outcome(DownloadOutcome<BodyFile>)
        case redirect(DownloadURL)
    }

    func end(_ code: CURLcode, onConsumed: @escaping @Sendable () -> Void) -> End {
        if let cut { return .outcome(.failed(with(response: cut))) }
        switch phase {
        case .headers where code == CURLE_OK:
            // A challenge without a body that could not be answered.
            return status()
        case .headers:
            return .outcome(.failed(failure(code)))
        case .draining:
            return status()
        case .body(let receiver):
            guard code == CURLE_OK || receiver.isFull else { return .outcome(.failed(failure(code))) }
            if let decoder, !decoder.isWhole, !receiver.isFull {
                let message = "The compressed body from \(hop.host) ends early."
                // If the protocol does not mark the end of the body, the connection may have broken off.
                return .outcome(.failed(with(response: Failure(isFramed ? .truncated : .connectionLost, message))))
            }
            if let assembly, receiver.size != assembly.total {
                let message = "\(hop.host) sent \(receiver.size) bytes in parts, of \(assembly.total)."
                // It may be resumed only if it is exactly the announced part.
                if receiver.size != assembly.end { _ = receiver.giveUp() }
                let failureClass: FailureClass = receiver.size < assembly.total ? .connectionLost : .truncated
                return .outcome(.failed(with(response: Failure(failureClass, message))))
            }
            do throws(Failure) {
                return .outcome(.body(try receiver.finish(onConsumed: onConsumed), response()))
            } catch {
                return .outcome(.failed(with(response: error)))
            }
        }
    }

    /// The outcome of a response other than 2xx. Only the status decides, not how its body ended.
    private func status() -> End {
        let status = easy.long(CURLINFO_RESPONSE_CODE)
        if status == 416, isResuming {
            return .outcome(.failed(notResumed("\(hop.host) no longer has that part of the body.", response())))
        }
        if status == 304, queued.request.hasValidators {
            if isOptedOut { return .outcome(.failed(with(response: optOut))) }
            return .outcome(.notModified(response()))
        }
        if [301, 302, 303, 307, 308].contains(status), let location = headers.location {
            do throws(Failure) {
                return .redirect(try next(location))
            } catch {
                return .outcome(.failed(with(response: error)))
            }
        }
        let retryAfter = headers.retryAfter.flatMap { RetryAfter.parse($0, now: Int64(time(nil))) }
        let message = "\(hop.host) answered with status \(status)."
        return .outcome(
            .failed(Failure(.http(status), message, retryAfter: retryAfter, response: response())),
        )
    }

    /// The bytes of an interrupted body that a later try can resume: this try's, or an earlier try's if this try
    /// received no body.
    func partial(_ failure: Failure) -> Partial? {
        guard case .body(let receiver) = phase else { return failure.failureClass.keepsEarlierBytes ? resume : nil }
        guard [.connectionLost, .timeout, .truncated].contains(failure.failureClass), let etag = headers.strongETag,
            let writer = receiver.giveUp(), writer.size >= Self.worthResuming
        else { return nil }
        // A body longer than announced is not one body.
        if let assembly, writer.size > assembly.end { return nil }
        return Partial(url: hop.text, etag: etag, writer: writer, total: assembly?.total ?? headers.contentLength)
    }

    private static let worthResuming: Int64 = 16 << 10

    private func next(_ location: [UInt8]) throws(Failure) -> DownloadURL {
        guard redirects < configuration.maxRedirects else {
            throw Failure(
                .tooManyRedirects,
                "\(queued.beginning.host) redirects more than \(configuration.maxRedirects) times.",
            )
        }
        do throws(Failure) {
            return try DownloadURL(location: location, relativeTo: hop, maxBytes: configuration.maxURLBytes)
        } catch {
            throw Failure(
                error.failureClass, "\(hop.host) redirects to a URL that cannot be followed. \(error.message)")
        }
    }

    private func failure(_ code: CURLcode) -> Failure {
        if case .refused(let address) = guardState, code == CURLE_COULDNT_CONNECT {
            refuse(address)
            if let cut { return with(response: cut) }
        }
        let message = "The download from \(hop.host) failed: \(easy.explain(code))."
        let failureClass = FailureClass(curl: code, inHeaders: phase.isHeaders && headerBytes > 0)
        return with(response: failureClass.map { Failure($0, message) } ?? .internalFault(message))
    }

    private func with(response failure: Failure) -> Failure {
        guard easy.long(CURLINFO_RESPONSE_CODE) > 0 else { return failure }
        var failure = failure
        failure.response = response()
        return failure
    }

    private func response() -> DownloadResponse {
        var response = DownloadResponse(status: easy.long(CURLINFO_RESPONSE_CODE), finalURL: hop.text)
        response.redirects = redirects
        response.etag = headers.etag
        response.lastModified = headers.lastModified
        response.contentType = headers.contentType
        response.cacheControl = headers.cacheControl
        response.expires = headers.expires
        response.date = headers.date
        response.age = headers.age
        response.robots = headers.robots
        response.vary = headers.vary
        response.httpVersion = httpVersion
        response.timings = timings()
        response.bytesReceived = bodyBytes
        response.bytesSaved = savedBytes
        response.isWhole = isFramed
        response.announcedBytes = headers.contentLength
        response.primaryAddress = easy.text(CURLINFO_PRIMARY_IP)
        return response
    }

    /// Whether the protocol marks the end of the body; HTTP/2 always does.
    private var isFramed: Bool {
        switch headers.framing {
        case .length, .chunked: true
        case .untilClose, .unsound: httpVersion == "2"
        }
    }

    private var httpVersion: String? {
        switch easy.long(CURLINFO_HTTP_VERSION) {
        case Int(CURL_HTTP_VERSION_1_0): "1.0"
        case Int(CURL_HTTP_VERSION_1_1): "1.1"
        case Int(CURL_HTTP_VERSION_2_0): "2"
        default: nil
        }
    }

    /// libcurl measures each time from the start of the hop; the differences are the times of the steps.
    private func timings() -> DownloadResponse.Timings {
        let resolved = easy.offset(CURLINFO_NAMELOOKUP_TIME_T)
        let connected = easy.offset(CURLINFO_CONNECT_TIME_T)
        let secured = easy.offset(CURLINFO_APPCONNECT_TIME_T)
        var timings = DownloadResponse.Timings()
        timings.dns = .microseconds(resolved)
        timings.connect = .microseconds(max(connected - resolved, 0))
        timings.tls = .microseconds(max(secured - connected, 0))
        timings.firstByte = .microseconds(easy.offset(CURLINFO_STARTTRANSFER_TIME_T))
        timings.total = elapsed
        return timings
    }
}

extension Transfer.Phase {
    fileprivate var isHeaders: Bool {
        if case .headers = self { true } else { false }
    }
}

extension FailureClass {
    /// Whether bytes of an earlier try stay usable after a try that received no body.
    fileprivate var keepsEarlierBytes: Bool { treatment == .retry || !isOfItem }

    /// Whether the worker refused the body.
    var isRefusal: Bool { [.tooLarge, .tooManyPixels, .notAnImage, .badImage, .filtered, .checksum].contains(self) }
}
