import Core
import Synchronization
import SystemPackage

/// Keeps each host's robots.txt for a day; all requests to the host share it.
final class RobotsKeeper: Sendable {
    private static let lifetime = Duration.seconds(86_400)
    /// RFC 9309 requires at least this much (section 2.5). The rest of a longer file is ignored.
    private static let maxBytes = 500 << 10

    private typealias Rules = Task<Answer, Never>

    private enum Answer: Sendable {
        case rules(RobotsText)
        /// The file cannot be fetched now; all requests that wait for it end like this.
        case unavailable(DownloadOutcome<BodyFile>)
    }

    private struct Entry {
        let rules: Rules
        let since: ContinuousClock.Instant
    }

    /// Each entry costs its bytes, counted after it was read, since each host decides how long its rules are.
    /// Rules that came over an unverified connection hold only for requests that allow one.
    private struct Site: Hashable {
        let origin: DownloadURL.Origin
        let allowsInvalidCertificates: Bool
    }

    private let entries: Mutex<LRUCache<Site, Entry>>
    /// Requests that wait for rules, by the number of their wait.
    private let waiting = Mutex<(last: UInt64, all: [UInt64: (wait: DownloadWait, since: ContinuousClock.Instant)])>(
        (0, [:]))
    private let agent: String

    init(agent: String, maxTotalBytes: Int64 = 16 << 20) {
        self.agent = agent
        entries = Mutex(LRUCache(countLimit: 10_000, costLimit: maxTotalBytes))
    }

    /// Why robots.txt forbids a URL; nil if it allows it.
    ///
    /// - Parameter fetch: downloads a robots.txt, without checking robots.txt for it.
    func objection(
        to url: DownloadURL, for request: DownloadRequest,
        fetch: @escaping @Sendable (DownloadRequest) async -> DownloadOutcome<BodyFile>,
    ) async -> DownloadOutcome<BodyFile>? {
        let asked = rules(of: url.origin, like: request, fetch)
        let place = beginWait(for: url, request)
        defer { if let place { waiting.withLock { $0.all[place] = nil } } }
        switch await asked.valueUnlessCancelled() {
        case nil: return .failed(.stopped())
        case .unavailable(.failed(let failure)):
            var own = Failure(
                failure.failureClass, "The robots.txt of \(url.host) can't be fetched. \(failure.message)",
                host: failure.host, retryAfter: failure.retryAfter)
            own.hasAsked = failure.hasAsked
            return .failed(own)
        case .unavailable(let outcome):
            return outcome
        case .rules(let rules):
            guard !rules.allows(url.pathAndQuery) else { return nil }
            return .failed(Failure(.optOut, "The robots.txt of \(url.host) does not allow this URL."))
        }
    }

    private func beginWait(for url: DownloadURL, _ request: DownloadRequest) -> UInt64? {
        guard let id = request.id else { return nil }
        let wait = DownloadWait(id: id, host: HostName.normal(url.host))
        return waiting.withLock { waiting in
            waiting.last += 1
            waiting.all[waiting.last] = (wait, .now)
            return waiting.last
        }
    }

    /// Requests with an id that have waited for longer than `time`.
    func waits(longerThan time: Duration) -> [DownloadWait] {
        let now = ContinuousClock.now
        return waiting.withLock { $0.all.values.filter { now - $0.since >= time }.map(\.wait) }
    }

    private func rules(
        of origin: DownloadURL.Origin, like request: DownloadRequest,
        _ fetch: @escaping @Sendable (DownloadRequest) async -> DownloadOutcome<BodyFile>,
    ) -> Rules {
        let site = Site(origin: origin, allowsInvalidCertificates: request.allowInvalidCertificates)
        return entries.withLock { entries in
            if let known = entries.value(site), known.since > .now - Self.lifetime { return known.rules }
            var question = DownloadRequest(
                url: "\(origin.scheme)://\(origin.host):\(origin.port)/robots.txt", priority: request.priority,
                rank: request.rank)
            question.allowInvalidCertificates = request.allowInvalidCertificates
            // One byte more shows whether the file is longer.
            question.maxBodyBytes = Int64(Self.maxBytes + 1)
            question.takesBeginning = true
            question.isInspected = false
            // Not a child task of the first request: all requests that wait for the file share the task. It ends with
            // its download.
            let task = Task { [question] in
                let result = Self.read(await fetch(question), agent: agent)
                learn(result, of: site)
                return result
            }
            entries.insert(Entry(rules: task, since: .now), for: site)
            return task
        }
    }

    /// Stores the rules. Rules that could not be read are dropped, so that the next request fetches them again.
    private func learn(_ result: Answer, of site: Site) {
        entries.withLock { entries in
            guard let entry = entries.remove(site), case .rules(let text) = result else { return }
            entries.insert(entry, for: site, cost: Int64(text.bytes))
        }
    }

    /// A missing file allows everything; a file that cannot be fetched is a failure.
    private static func read(_ outcome: DownloadOutcome<BodyFile>, agent: String) -> Answer {
        switch outcome {
        case .body(let body, _):
            body.markConsumed()
            do {
                return .rules(RobotsText(wholeLines(of: try bytes(of: body)), agent: agent))
            } catch {
                return .unavailable(.failed(Failure(.diskError, "The stored robots.txt can't be read: \(error).")))
            }
        case .notModified: return .rules(.allowsAll)
        case .shed: return .unavailable(outcome)
        case .failed(let failure):
            switch failure.failureClass {
            case .http(let status) where (400...499).contains(status) && status != 429: return .rules(.allowsAll)
            case .tooManyRedirects: return .rules(.allowsAll)
            default: return .unavailable(outcome)
            }
        }
    }

    /// Drops an incomplete last line, since a cut rule may match more than the whole one.
    private static func wholeLines(of bytes: [UInt8]) -> ArraySlice<UInt8> {
        guard bytes.count > maxBytes else { return bytes[...] }
        return bytes[..<(bytes.lastIndex { $0 == 10 || $0 == 13 } ?? 0)]
    }

    private static func bytes(of body: BodyFile) throws -> [UInt8] {
        try body.withDescriptor { descriptor in
            try [UInt8](unsafeUninitializedCapacity: Int(body.size)) { buffer, count in
                count = try descriptor.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }
}

extension DownloadURL {
    /// The part of the URL after the host.
    var pathAndQuery: String {
        guard let scheme = text.firstRange(of: "://") else { return "/" }
        return String(text[scheme.upperBound...].drop { $0 != "/" && $0 != "?" })
    }
}
