public import Core

/// The present state of a host.
public struct HostSnapshot: Sendable, Hashable {
    public var host: String
    public var running = 0
    public var waiting = 0
    /// Transfers that may run at once; below 1 there are pauses between them.
    public var window: Double
    /// The largest possible window, by the host's own limits.
    public var widest: Int
    public var block: HostBlock?
    /// How long the block will last.
    public var blockedFor: Duration?
    /// How often its circuit has opened since its last answer.
    public var circuitOpenCount = 0
    /// Requests that the downloader has started so far.
    public var started: Int64 = 0
    /// Why its next request has to wait; nil if only the downloader's own concurrency holds it back.
    public var wait: HostWait?
    /// Its latest failures, if it cannot be reached.
    public var silence: HostOutage?
    public var hasAnswered = false
}

/// Why requests to a host wait.
public struct HostWait: Sendable, Hashable {
    /// A sentence that names the host.
    public let reason: String
    /// How long no request starts; nil if unknown.
    public let time: Duration?
}

/// The failures of a host, which may never have answered.
public struct HostOutage: Sendable, Hashable {
    /// Time since the first failure of a host that has never answered. For a host that has answered, it equals
    /// ``last``.
    public let since: Duration
    /// Time since the last failure.
    public let last: Duration
    public let failure: FailureClass
    public let message: String

    public init(since: Duration, last: Duration, failure: FailureClass, message: String) {
        self.since = since
        self.last = last
        self.failure = failure
        self.message = message
    }
}

extension WaitingQueue {
    /// The hosts with any state worth reporting.
    func snapshots(now: ContinuousClock.Instant) -> [HostSnapshot] {
        hosts.map { name, host in
            var snapshot = HostSnapshot(
                host: name, running: host.running, waiting: host.live, window: host.gate.window,
                widest: host.gate.limits.perHost, block: host.gate.block,
                blockedFor: host.gate.blockedUntil.map { max(.zero, $0 - now) },
                circuitOpenCount: host.gate.circuitOpenCount, started: host.gate.started)
            snapshot.hasAnswered = host.gate.hasAnswered
            snapshot.wait = host.gate.wait(of: name, running: host.running, now: now)
            snapshot.silence = host.gate.silence(now)
            return snapshot
        }
    }

    /// Requests with an id that have been queued for longer than `time`.
    func waits(longerThan time: Duration, now: ContinuousClock.Instant) -> [DownloadWait] {
        waiting.values.compactMap { entry in
            guard let id = entry.queued.request.id, now - entry.since >= time else { return nil }
            return DownloadWait(id: id, host: entry.queued.host)
        }
    }
}

extension HostGate {
    func silence(_ now: ContinuousClock.Instant) -> HostOutage? {
        guard let (at, failure) = reach.lastFailure else { return nil }
        return HostOutage(
            since: now - (reach.failingSince ?? at), last: now - at, failure: failure.failureClass,
            message: failure.message)
    }

    func wait(of host: String, running: Int, now: ContinuousClock.Instant) -> HostWait? {
        if let until = blockedUntil, let block {
            return HostWait(reason: sentence(block, host, now), time: max(.zero, until - now))
        }
        if let until = heldUntil {
            return HostWait(reason: pauseSentence(host), time: max(.zero, until - now))
        }
        guard !mayStart(running: running) else { return nil }
        if let share = share?.slots, share < limits.perHost, running >= share {
            let most = limits.perHost
            return HostWait(
                reason:
                    "\(host) is at its limit of requests at once: this worker may send \(share) of \(most) in all (--per-host).",
                time: nil)
        }
        if isProbed { return HostWait(reason: "One request tests whether \(host) can be reached.", time: nil) }
        if Int(window) < limits.perHost {
            return HostWait(
                reason: "\(host) is overloaded (429, 503): \(max(1, Int(window))) requests at once for now.",
                time: nil)
        }
        return HostWait(
            reason: "\(host) is at its limit of \(limits.perHost) requests at once (--per-host).", time: nil)
    }

    private func sentence(_ block: HostBlock, _ host: String, _ now: ContinuousClock.Instant) -> String {
        switch block {
        case .retryAfter: return "\(host) asked for a pause (Retry-After)."
        case .circuitOpen:
            if isGivenUp(now) { return "\(host) has never answered, and its items fail (--host-patience)." }
            return "\(host) could not be reached several times in a row, and gets no requests for now."
        }
    }

    private func pauseSentence(_ host: String) -> String {
        if let narrowed = width.narrowed, narrowed < 1 {
            let pause = Int((1 / narrowed).rounded())
            return "\(host) is overloaded (429, or 503 for most URLs): one request every \(pause) s for now."
        }
        return "\(host) gets \(limits.rate.map { "\($0)" } ?? "no more") requests a second (--rate)."
    }
}
