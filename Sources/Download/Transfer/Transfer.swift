import CCurl
import Core
import SystemPackage

/// A running transfer: its hops on one host, its phase, its limits. Only the curl thread uses it.
final class Transfer {
    let queued: QueuedTransfer
    let easy: EasyHandle
    let configuration: DownloadConfiguration
    let tools: Tools
    let jar: CookieJar?
    var connections: KnownConnections { tools.connections }
    /// The bytes of the body that an earlier try received.
    let resume: Partial?

    /// The URL of the current hop.
    private(set) var hop: DownloadURL
    private(set) var redirects: Int
    var headers = ResponseHeaders()
    var headerBytes = 0
    /// Bytes of the body before content decoding. libcurl 8 counts a piece only after its delivery.
    var bodyBytes: Int64 = 0
    var phase = Phase.headers
    var guardState = GuardState.untouched
    /// Nil for a body without a content coding.
    var decoder: ContentDecoder?
    /// Sockets that were opened for this hop.
    var openedSockets: [CInt] = []
    private(set) var connection: KnownConnections.Connection?
    /// Whether the transfer must use another connection than the one it got.
    private(set) var needsOtherConnection = false
    /// Whether it shares its connection with no other transfer, before or after it.
    private(set) var usesOwnConnection = false
    /// The expected length of a resumed body.
    var assembly: Assembly?
    /// Why the downloader ended the transfer. It overrides libcurl's own error.
    private(set) var cut: Failure?
    /// Whether it waits for disk space; then its silence is not the origin's.
    var isPaused = false
    /// Called, from any thread, when there is space again.
    var onSpace: @Sendable () -> Void = {}
    /// Called just before a request is sent: whether the worker still has the slot that it was started in.
    var allowsSending: () -> Bool = { true }

    /// The start time of the chain, as if its hops had followed each other immediately.
    private let started: ContinuousClock.Instant
    private var hopStarted: ContinuousClock.Instant
    /// Time of the last byte, once there is a connection.
    private var lastByte: ContinuousClock.Instant?

    /// The caller's functions for bodies, and the connections that all transfers share.
    struct Tools {
        let makeFile: @Sendable () throws -> FileDescriptor
        let makeReservation: @Sendable (Int64?) -> (any SpaceReservation)?
        let inspect: @Sendable (UnsafeRawBufferPointer) -> BodyVerdict
        let measure: @Sendable (UnsafeRawBufferPointer) -> (width: Int, height: Int)?
        let connections = KnownConnections()
    }

    enum Phase {
        /// Waits for the end of the final response's headers.
        case headers
        case body(BodyReceiver)
        /// The status has decided the outcome; the rest is read only to keep the connection usable.
        case draining(bytes: Int, until: ContinuousClock.Instant)
    }

    enum GuardState {
        case untouched
        /// Every address so far was refused; this is the last one.
        case refused(String)
        /// At least one address was allowed.
        case allowed
    }

    init(
        _ queued: QueuedTransfer, easy: EasyHandle, configuration: DownloadConfiguration, tools: Tools,
        jar: CookieJar? = nil, resume: Partial? = nil, now: ContinuousClock.Instant,
    ) {
        self.jar = jar
        self.resume = resume
        redirects = queued.hop.redirects
        self.queued = queued
        self.easy = easy
        self.configuration = configuration
        self.tools = tools
        hop = queued.url
        started = now - queued.hop.spent
        hopStarted = now
        // Looks for unsolicited bytes. Without TLS, libcurl leaves them in the socket, where ``take(_:)`` finds them.
        if speaksTLS { connections.lookAtIdle(of: queued.host, isSecure: true) }
        usesOwnConnection = connections.distrusts(queued.host)
    }

    var elapsed: Duration { .now - started }

    /// Announced bytes that were not fetched because the body was refused.
    var savedBytes: Int64 {
        guard let cut, cut.failureClass.isRefusal, let length = headers.contentLength else { return 0 }
        return min(max(0, length - bodyBytes), Self.maxSavedBytes)
    }

    /// More than an origin sends; it keeps sums of these numbers from overflowing.
    private static let maxSavedBytes: Int64 = 1 << 40

    /// The progress of a request with an id.
    var progress: DownloadProgress? {
        guard let id = queued.request.id else { return nil }
        let received = bodyBytes.addingSaturated(assembly?.start ?? 0)
        return DownloadProgress(id: id, received: received, expected: assembly?.total ?? headers.contentLength)
    }

    func idleTime(_ now: ContinuousClock.Instant) -> DownloadScheduler.IdleTime {
        // An established connection does not count as an answer.
        DownloadScheduler.IdleTime(
            time: now - (lastByte ?? hopStarted), isNew: headerBytes == 0 && redirects == queued.hop.redirects)
    }

    /// Records why the transfer ends; only the first reason counts.
    func cut(_ failure: Failure) {
        if cut == nil { cut = failure }
    }

    func touch() { lastByte = .now }

    /// Follows a redirect on the same host.
    func follow(_ url: DownloadURL) {
        hop = url
        redirects += 1
        beginHop()
    }

    /// Repeats the request on a new connection.
    func reconnect() {
        (needsOtherConnection, usesOwnConnection) = (false, true)
        beginHop()
    }

    private func beginHop() {
        (decoder, openedSockets) = (nil, [])
        letGoOfConnection()
        headers = ResponseHeaders()
        (headerBytes, bodyBytes) = (0, 0)
        phase = .headers
        guardState = .untouched
        lastByte = nil
        hopStarted = .now
    }
}

// The connection of this hop.
extension Transfer {
    /// - Returns: whether it may be used. Bytes that came before the request would be taken for its answer.
    func take(_ connection: KnownConnections.Connection) -> Bool {
        // On a new connection the server may send first, as TLS and HTTP/2 do.
        let early = openedSockets.isEmpty ? connections.unsolicited(on: connection, isSecure: speaksTLS) : .nothing
        if case .nothing = early {
            connections.use(connection, for: queued.host)
            self.connection = connection
            return true
        }
        if case .bytes = early { connections.distrust(queued.host) }
        needsOtherConnection = true
        return false
    }

    private var speaksTLS: Bool {
        hop.origin.scheme == "https" || configuration.proxy?.lowercased().hasPrefix("https:") == true
    }

    func letGoOfConnection() {
        guard let connection else { return }
        if easy.long(CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0) { connection.isMultiplexed = true }
        connection.users -= 1
        self.connection = nil
    }
}

// The request of this hop.
extension Transfer {
    private var isAtOrigin: Bool { hop.origin == queued.beginning.origin }

    /// The credentials of a redirect's URL, or the request's own if the hop has their origin.
    var hopAuthorization: Authorization? {
        if let own = hop.credentials { return Authorization(basic: own) }
        return isAtOrigin ? queued.authorization : nil
    }

    /// Whether the request needs only the options that every request needs.
    var isUsual: Bool {
        hopAuthorization == nil && jar == nil && !isResuming && !usesOwnConnection && queued.request.body == nil
            && !queued.request.allowInvalidCertificates && queued.request.timeouts.connect == nil
    }

    /// Whether this hop requests only the rest of a body.
    var isResuming: Bool { resume.map { $0.url == hop.text } ?? false && !queued.request.hasValidators }

    private func line(_ header: (name: String, value: String)) -> String {
        // In libcurl's syntax a header without a value ends in a semicolon.
        header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)"
    }

    var hopHeaders: [String] {
        let request = queued.request
        let isClear = request.authorization != nil
        let own =
            isAtOrigin ? request.headers.filter { !isClear || $0.name.lowercased() != "authorization" } : []
        let names = Set(own.map { $0.name.lowercased() })
        var lines: [String] = []
        if !own.isEmpty {
            let taken = Set(configuration.commonHeaders.map { $0.name.lowercased() })
            // An empty header removes the common header of that name; if there is none, it is sent empty.
            lines = own.map { header in
                header.value.isEmpty && taken.contains(header.name.lowercased()) ? "\(header.name):" : line(header)
            }
        }
        lines += configuration.commonHeaders.filter { !names.contains($0.name.lowercased()) }.map(line)
        if let etag = request.etag { lines.append("If-None-Match: \(etag)") }
        if let date = request.lastModified { lines.append("If-Modified-Since: \(date)") }
        if isResuming, let resume { lines += ["Range: bytes=\(resume.writer.size)-", "If-Range: \(resume.etag)"] }
        return lines
    }
}

// Deadlines. libcurl's own idle timeout has whole seconds, and its total timeout applies to each hop.
extension Transfer {
    private var totalTimeout: Duration { queued.request.timeouts.total ?? configuration.totalTimeout }
    private var silenceTimeout: Duration { queued.request.timeouts.silence ?? configuration.silenceTimeout }

    var deadline: ContinuousClock.Instant {
        var deadline = started + totalTimeout
        if let lastByte, !isPaused { deadline = min(deadline, lastByte + silenceTimeout) }
        if case .draining(_, let until) = phase { deadline = min(deadline, until) }
        return deadline
    }

    /// Called when the deadline has passed. While draining, that is no failure.
    func expire(now: ContinuousClock.Instant) {
        if case .draining = phase { return }
        if now >= started + totalTimeout {
            cut(Failure(.timeout, "The download from \(hop.host) took longer than \(totalTimeout)."))
        } else {
            cut(Failure(.timeout, "\(hop.host) sent nothing for \(silenceTimeout)."))
        }
    }
}
