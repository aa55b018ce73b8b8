import CCurl
import Core
import Glibc
import SystemPackage

// libcurl's callbacks. Each returns whether the transfer continues.
extension Transfer {
    /// Bodies of errors and redirects are read up to this length, to keep the connection usable.
    private static let drainBytes = 16 << 10
    private static let drainTime = Duration.seconds(2)

    func receive(header line: UnsafeRawBufferPointer) -> Bool {
        touch()
        headerBytes += line.count
        guard headerBytes <= configuration.maxHeaderBytes else {
            let what = "The headers from \(hop.host) are larger than \(configuration.maxHeaderBytes) bytes."
            cut(Failure(.tooLarge, "\(what) No option raises this."))
            return false
        }
        // Trailers of a chunked body are delivered here too; they change nothing.
        guard case .headers = phase else { return true }
        if line.starts(with: "HTTP/".utf8) {
            headers = ResponseHeaders()
        } else if line.first == 0x0D || line.first == 0x0A {
            return endOfHeaders()
        } else {
            headers.absorb(line)
        }
        return true
    }

    func receive(body bytes: UnsafeRawBufferPointer) -> BodyReceiver.Reception {
        touch()
        isPaused = false
        switch phase {
        case .headers:
            // The body of a digest challenge that libcurl does not answer, since the server has already rejected the
            // credentials.
            guard isChallenged else { return .stop }
            phase = .draining(bytes: bytes.count, until: .now + Self.drainTime)
            return bytes.count <= Self.drainBytes ? .goOn : .stop
        case .draining(let drained, let until):
            phase = .draining(bytes: drained + bytes.count, until: until)
            return drained + bytes.count <= Self.drainBytes ? .goOn : .stop
        case .body(let receiver):
            do throws(Failure) {
                let reception: BodyReceiver.Reception
                if let decoder {
                    reception = try decoder.decode(bytes, from: hop.host) { part throws(Failure) in
                        try receiver.receive(part, onSpace: onSpace)
                    }
                } else {
                    reception = try receiver.receive(bytes, onSpace: onSpace)
                }
                if case .pause = reception { isPaused = true }
                return reception
            } catch {
                cut(error)
                return .stop
            }
        }
    }

    private func endOfHeaders() -> Bool {
        let status = easy.long(CURLINFO_RESPONSE_CODE)
        // An interim response (100, 103): the final one follows.
        if status < 200 { return true }
        let framing = headers.framing
        let length = headers.contentLength ?? 0
        // libcurl answers a challenge itself, and another response follows.
        if isChallenged { return true }
        guard (200...299).contains(status) else {
            phase = .draining(bytes: 0, until: .now + Self.drainTime)
            // A 304 has no body, even if its headers announce one.
            return status == 304 || (length <= Self.drainBytes && framing != .unsound)
        }
        guard framing != .unsound || status == 204 else {
            cut(
                Failure(
                    .truncated,
                    "\(hop.host) sent contradictory lengths of the body (Content-Length, Transfer-Encoding)."))
            return false
        }
        guard !ContentDecoder.isUnknown(headers.contentEncoding) else {
            cut(Failure(.truncated, "\(hop.host) sent the body in a Content-Encoding that was not requested."))
            return false
        }
        if isOptedOut {
            cut(optOut)
            return false
        }
        guard queued.request.accepts(contentType: headers.contentType) else {
            let said = headers.contentType.map { "says that it sends \($0.prefix(100))" } ?? "doesn't say what it sends"
            cut(Failure(.notAnImage, "\(hop.host) \(said), which the job doesn't accept."))
            return false
        }
        let limit = queued.request.maxBodyBytes ?? configuration.maxBodyBytes
        // A length that overflows is refused, even if only the beginning is needed.
        guard length <= limit || (queued.request.takesBeginning && length < .max) else {
            cut(
                Failure(
                    .tooLarge, "The body from \(hop.host) is announced with \(length) bytes; the limit is \(limit)."))
            return false
        }
        guard let writer = earlierBytes() else { return false }
        let expected = headers.decodedLength.map { $0.addingSaturated(writer.bytes?.size ?? 0) }
        do throws(Failure) {
            if let expected { try queued.request.filter?.check(announced: expected) }
        } catch {
            cut(error)
            return false
        }
        let receiver = BodyReceiver(
            tools: tools, limit: limit, host: hop.host, watch: queued.request.watch,
            progress: queued.request.progress, expected: expected, resuming: writer.bytes)
        receiver.item = queued.request.id
        receiver.filter = queued.request.filter
        decoder = ContentDecoder(headers.contentEncoding)
        receiver.isInspected = queued.request.isInspected
        receiver.takesBeginning = queued.request.takesBeginning
        phase = .body(receiver)
        return true
    }

    /// Whether the response opts out of our use; a 304 may do so too.
    var isOptedOut: Bool {
        queued.request.respectsRobotsTag && RobotsTag.forbids(headers.robots, agent: configuration.agentName)
    }

    var optOut: Failure {
        Failure(.optOut, "\(hop.host) refuses this to robots, by X-Robots-Tag.")
    }

    private var isChallenged: Bool {
        hopAuthorization?.scheme == .digest && easy.long(CURLINFO_RESPONSE_CODE) == 401
    }

    /// The bytes of an earlier try, if this response continues them; nil for a part that does not match or was not
    /// requested.
    private func earlierBytes() -> (bytes: BodyWriter?, Void)? {
        guard easy.long(CURLINFO_RESPONSE_CODE) == 206 else { return (nil, ()) }
        guard isResuming, let resume else {
            cut(Failure(.truncated, "\(hop.host) sent a part of the body, but the whole was requested."))
            return nil
        }
        let range = headers.contentRange.flatMap(ContentRange.init)
        assembly = range.flatMap { Assembly($0, after: resume, length: headers.contentLength) }
        guard assembly != nil, headers.etag == resume.etag, headers.contentEncoding == nil else {
            cut(notResumed("\(hop.host) sent a different part of the body than was requested."))
            return nil
        }
        return (resume.writer, ())
    }
}

extension Transfer {
    /// The failure of a try that should have continued a body. The connection of the previous try broke, so the URL is
    /// not blacklisted.
    func notResumed(_ message: String, _ response: DownloadResponse? = nil) -> Failure {
        var failure = Failure(.truncated, message, response: response)
        failure.isListed = false
        return failure
    }
}

// The address policy.
extension Transfer {
    func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>) -> curl_socket_t {
        guard mayConnect(to: address) else { return ccurl_bad_socket() }
        guardState = .allowed
        // Helpers are started while connections are open; they must not inherit them.
        let type = address.pointee.socktype | CInt(bitPattern: SOCK_CLOEXEC.rawValue)
        let made = socket(address.pointee.family, type, address.pointee.protocol)
        if made >= 0 { openedSockets.append(made) }
        if made < 0, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
            // A shortage of this machine, as for files; it does not count against the host.
            let reason = Errno(rawValue: errno)
            cut(Failure(.diskError, "No connection to \(hop.host) can be made: \(reason)."))
        }
        return made
    }

    func mayUseConnection(to address: String, localPort: CInt, remotePort: CInt) -> Bool {
        if configuration.proxy == nil, !configuration.addresses.allows(address) {
            refuse(address)
            return false
        }
        guard allowsSending() else {
            cut(.stopped("The worker was suspended, and other workers may have its slots."))
            return false
        }
        let ends = KnownConnections.Ends(localPort: localPort, address: address, remotePort: remotePort)
        if let known = connections.connection(ends, opened: openedSockets), !take(known) { return false }
        touch()
        return true
    }

    private func mayConnect(to address: UnsafeMutablePointer<curl_sockaddr>) -> Bool {
        // With a proxy the address is the proxy's, which the operator chose.
        if configuration.proxy != nil { return true }
        let length = Int(address.pointee.addrlen)
        let parsed = withUnsafePointer(to: &address.pointee.addr) { IPAddress($0, length: length) }
        guard let parsed, configuration.addresses.allows(parsed) else {
            if case .allowed = guardState { return false }
            guardState = .refused(parsed.map(String.init(describing:)) ?? "an address of an unknown kind")
            return false
        }
        return true
    }

    func refuse(_ address: String) {
        let sentence =
            hop.host == address
            ? "\(address) may not be connected to."
            : "\(hop.host) has the address \(address), which may not be connected to."
        cut(Failure(.forbiddenAddress, sentence))
    }

    /// Tells the observer of a body that it fails; a body that hasn't begun has no observer.
    func tellFailure() {
        if case .body(let receiver) = phase { receiver.fail() }
    }
}
