import Core
import Synchronization
import SystemPackage

/// Each host's robots.txt, asked for once a day and shared by all requests to the host.
final class RobotsKeeper: Sendable {
    private static let lifetime = Duration.seconds(86_400)
    /// RFC 9309 has robots read at least so much (section 2.5). What comes after is left out.
    private static let maxBytes = 500 << 10

    private typealias Rules = Task<Answer, Never>

    private enum Answer: Sendable {
        case rules(RobotsText)
        /// They can't be had now: the end of all requests that wait for them.
        case unavailable(DownloadOutcome<BodyFile>)
    }

    private struct Entry {
        let rules: Rules
        let since: ContinuousClock.Instant
    }

    /// Each costs its bytes, which are known once it is read: how long its rules are, each host decides.
    private let entries: Mutex<LRUCache<DownloadURL.Origin, Entry>>
    /// Requests that wait for rules, by a number for each wait.
    private let waiting = Mutex<(last: UInt64, all: [UInt64: (wait: DownloadWait, since: ContinuousClock.Instant)])>(
        (0, [:]))
    private let agent: String

    init(agent: String, maxTotalBytes: Int64 = 16 << 20) {
        self.agent = agent
        entries = Mutex(LRUCache(countLimit: 10_000, costLimit: maxTotalBytes))
    }

    /// Why a URL may not be asked for; nil where it may.
    ///
    /// - Parameter fetch: downloads a robots.txt, without asking for it here.
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
            return .failed(
                Failure(
                    failure.failureClass, "The robots.txt of \(url.host) can't be had. \(failure.message)",
                    host: failure.host, retryAfter: failure.retryAfter))
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

    /// Requests with an id that have waited for so long.
    func waits(longerThan time: Duration) -> [DownloadWait] {
        let now = ContinuousClock.now
        return waiting.withLock { $0.all.values.filter { now - $0.since >= time }.map(\.wait) }
    }

    private func rules(
        of origin: DownloadURL.Origin, like request: DownloadRequest,
        _ fetch: @escaping @Sendable (DownloadRequest) async -> DownloadOutcome<BodyFile>,
    ) -> Rules {
        entries.withLock { entries in
            if let known = entries.value(origin), known.since > .now - Self.lifetime { return known.rules }
            var question = DownloadRequest(
                url: "\(origin.scheme)://\(origin.host):\(origin.port)/robots.txt", priority: request.priority,
                rank: request.rank)
            question.allowInvalidCertificates = request.allowInvalidCertificates
            // One more tells whether it goes on.
            question.maxBodyBytes = Int64(Self.maxBytes + 1)
            question.takesBeginning = true
            question.isInspected = false
            // Not a child task of the first request: all requests that wait for it share it, and it ends with its
            // download.
            let task = Task { [question] in
                let result = Self.read(await fetch(question), agent: agent)
                learn(result, of: origin)
                return result
            }
            entries.insert(Entry(rules: task, since: .now), for: origin)
            return task
        }
    }

    /// The next request asks again for rules that could not be read.
    private func learn(_ result: Answer, of origin: DownloadURL.Origin) {
        entries.withLock { entries in
            guard let entry = entries.remove(origin), case .rules(let text) = result else { return }
            entries.insert(entry, for: origin, cost: Int64(text.bytes))
        }
    }

    /// A file that isn't there allows everything; one that can't be had says nothing yet.
    private static func read(_ outcome: DownloadOutcome<BodyFile>, agent: String) -> Answer {
        switch outcome {
        case .body(let body, _):
            body.markConsumed()
            return .rules(RobotsText(wholeLines(of: bytes(of: body)), agent: agent))
        case .notModified: return .rules(.allowsAll)
        case .crowded: return .unavailable(outcome)
        case .failed(let failure):
            switch failure.failureClass {
            case .http(let status) where (400...499).contains(status) && status != 429: return .rules(.allowsAll)
            case .tooManyRedirects: return .rules(.allowsAll)
            default: return .unavailable(outcome)
            }
        }
    }

    /// A line that is cut through may say more than the whole one.
    private static func wholeLines(of bytes: [UInt8]) -> ArraySlice<UInt8> {
        guard bytes.count > maxBytes else { return bytes[...] }
        return bytes[..<(bytes.lastIndex { $0 == 10 || $0 == 13 } ?? 0)]
    }

    private static func bytes(of body: BodyFile) -> [UInt8] {
        body.withDescriptor { descriptor in
            // A file that was written a moment ago and can't be read now: then it says nothing.
            (try? [UInt8](unsafeUninitializedCapacity: Int(body.size)) { buffer, count in
                count = try descriptor.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
            }) ?? []
        }
    }
}

extension DownloadURL {
    /// The part of the URL behind the host.
    var pathAndQuery: String {
        guard let scheme = text.firstRange(of: "://") else { return "/" }
        return String(text[scheme.upperBound...].drop { $0 != "/" && $0 != "?" })
    }
}
