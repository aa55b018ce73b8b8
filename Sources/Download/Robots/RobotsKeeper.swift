import Synchronization
import SystemPackage

/// What each host's robots.txt says, asked for once a day and shared by all who want to know.
final class RobotsKeeper: Sendable {
    private static let lifetime = Duration.seconds(86_400)
    private static let most = 10_000
    /// Bytes of rules that are kept. How long its own are, each host decides.
    private let mostBytes: Int
    /// RFC 9309 has robots read at least so much (section 2.5). What comes after is left out.
    private static let maxBytes = 500 << 10

    private typealias Rules = Task<Result<RobotsText, DownloadFailure>, Never>

    private struct Entry {
        let rules: Rules
        let since: ContinuousClock.Instant
        /// Known once it is read.
        var bytes = 0
    }

    private let entries = Mutex<[DownloadURL.Origin: Entry]>([:])
    /// Who waits for rules, by numbers of their own.
    private let waiting = Mutex<(last: UInt64, all: [UInt64: (wait: DownloadWait, since: ContinuousClock.Instant)])>(
        (0, [:]))
    private let agent: String

    init(agent: String, mostBytes: Int = 16 << 20) { (self.agent, self.mostBytes) = (agent, mostBytes) }

    /// Why a URL may not be asked for; nil where it may.
    ///
    /// - Parameter fetch: downloads a robots.txt, without asking for it here.
    func objection(
        to url: DownloadURL, for request: DownloadRequest,
        fetch: @escaping @Sendable (DownloadRequest) async -> DownloadOutcome,
    ) async -> DownloadFailure? {
        let asked = rules(of: url.origin, like: request, fetch)
        let place = beginWait(for: url, request)
        defer { if let place { waiting.withLock { $0.all[place] = nil } } }
        switch await asked.valueUnlessCancelled() {
        case nil: return .cancelled
        case .failure(let failure):
            return DownloadFailure(
                failure.code, "The robots.txt of \(url.host) can't be had. \(failure.message)",
                retryAfter: failure.retryAfter, host: failure.host)
        case .success(let rules):
            guard !rules.allows(url.pathAndQuery) else { return nil }
            return DownloadFailure(.optOut, "The robots.txt of \(url.host) does not allow this URL.")
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

    /// What has waited for so long, and has a number of its caller's.
    func waits(longerThan time: Duration) -> [DownloadWait] {
        let now = ContinuousClock.now
        return waiting.withLock { $0.all.values.filter { now - $0.since >= time }.map(\.wait) }
    }

    private func rules(
        of origin: DownloadURL.Origin, like request: DownloadRequest,
        _ fetch: @escaping @Sendable (DownloadRequest) async -> DownloadOutcome,
    ) -> Rules {
        entries.withLock { entries in
            if let known = entries[origin], known.since > .now - Self.lifetime { return known.rules }
            if entries.count >= Self.most { entries.removeAll() }
            var question = DownloadRequest(
                url: "\(origin.scheme)://\(origin.host):\(origin.port)/robots.txt", priority: request.priority,
                rank: request.rank, allowInvalidCertificates: request.allowInvalidCertificates)
            // One more tells whether it goes on.
            question.maxBodyBytes = Int64(Self.maxBytes + 1)
            question.takesBeginning = true
            question.isInspected = false
            // Not a child of whoever asks first: it belongs to all who wait for it, and ends with its download.
            let task = Task { [question] in
                let result = Self.read(await fetch(question), agent: agent)
                learn(result, of: origin)
                return result
            }
            entries[origin] = Entry(rules: task, since: .now)
            return task
        }
    }

    /// What can't be had is asked for again by the next, whether anybody has waited for it to the end or not. Where all rules
    /// are too much, the oldest go.
    private func learn(_ result: Result<RobotsText, DownloadFailure>, of origin: DownloadURL.Origin) {
        entries.withLock { entries in
            guard case .success(let text) = result else {
                entries[origin] = nil
                return
            }
            entries[origin]?.bytes = text.bytes
            var total = entries.values.reduce(0) { $0 + $1.bytes }
            let oldest = total > mostBytes ? entries.sorted { $0.value.since < $1.value.since } : []
            for entry in oldest where total > mostBytes && entry.value.bytes > 0 {
                entries[entry.key] = nil
                total -= entry.value.bytes
            }
        }
    }

    /// A file that isn't there allows everything; one that can't be had says nothing yet.
    private static func read(_ outcome: DownloadOutcome, agent: String) -> Result<RobotsText, DownloadFailure> {
        switch outcome {
        case .body(let body, _):
            body.markConsumed()
            return .success(RobotsText(wholeLines(of: bytes(of: body)), agent: agent))
        case .notModified: return .success(.allowsAll)
        case .failed(let failure):
            switch failure.code {
            case .http(let status) where (400...499).contains(status) && status != 429: return .success(.allowsAll)
            case .tooManyRedirects: return .success(.allowsAll)
            default: return .failure(failure)
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
    /// What stands behind the host.
    var pathAndQuery: String {
        guard let scheme = text.firstRange(of: "://") else { return "/" }
        return String(text[scheme.upperBound...].drop { $0 != "/" && $0 != "?" })
    }
}
