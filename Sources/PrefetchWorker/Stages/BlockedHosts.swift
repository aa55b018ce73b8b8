internal import Core
internal import Download
internal import Jobs
internal import Synchronization

/// Ends items whose host must not be requested now.
final class BlockedHosts: Sendable {
    /// How long an item waits in memory for a blocked host: an open circuit or a `Retry-After`.
    static let longestWait = Duration.seconds(5)

    let downloader: Downloader
    let shedHosts: ShedHosts
    let now: @Sendable () -> WallTime

    init(downloader: Downloader, shedHosts: ShedHosts, now: @escaping @Sendable () -> WallTime) {
        self.downloader = downloader
        self.shedHosts = shedHosts
        self.now = now
    }

    /// The ending of an item whose host is blocked for too long to keep the item in memory; nil otherwise.
    ///
    /// Waiting for `Retry-After` uses up no try. Waiting for an open circuit does; otherwise the items of a host that
    /// is gone for good would wait for ever.
    ///
    /// - Parameter host: the target of a redirect; nil for the URL's own host.
    func ending(of item: ClaimedItem, at host: String? = nil) throws(Failure) -> ItemEnding? {
        guard downloader.blocksHosts else { return nil }
        let host = host ?? HostNames.name(ofURL: item.url)
        guard let (instant, reason) = downloader.blocked(host) else { return nil }
        if let silence = downloader.givenUp(host) { return givenUp(host, silence) }
        let left = ContinuousClock.now.duration(to: instant)
        guard left > Self.longestWait else { return nil }
        switch reason {
        case .retryAfter:
            return .wait(
                until: now() + left.milliseconds, host: host, reason: "\(host) asked for a pause (Retry-After).")
        case .circuitOpen:
            var failure = Failure(
                .connect, "\(host) could not be reached several times in a row, and gets no requests for now.")
            failure.retryAfter = left
            failure.host = host
            failure.hasAsked = false
            throw failure
        }
    }

    /// The ending of an item whose host was given up. Its URL is not listed, since the host may come back.
    private func givenUp(_ host: String, _ silence: HostOutage) -> ItemEnding {
        var record = Failure(
            silence.failure,
            "\(host) has not answered for \(silence.since.components.seconds) s (--host-patience). \(silence.message)")
        record.host = host
        record.hasAsked = false
        record.isListed = false
        return .failed(record)
    }

    /// The ending of an item that was shed to make room for items of other hosts.
    func shed(_ host: String) -> ItemEnding {
        .wait(
            until: now() + shedHosts.delay(of: host), host: host,
            reason: "Many items wait for \(host), which is at its limits."
        )
    }
}

/// Hosts with more waiting items than a worker can hold, and the number of items that it shed of each.
final class ShedHosts: Sendable {
    private let sentAway = Mutex<[String: Int64]>([:])

    var hosts: [String] { sentAway.withLock { Array($0.keys) } }

    /// How long a shed item is delayed, in milliseconds. The delay grows with the number of items shed before it, so
    /// that items that come back do not push aside those that had no turn yet.
    func delay(of host: String) -> Int64 {
        let count = sentAway.withLock { hosts in
            hosts[host, default: 0] += 1
            return hosts[host] ?? 1
        }
        return min(600_000, 5_000 + 2 * count)
    }

    func forget(_ host: String) { sentAway.withLock { $0[host] = nil } }
}

/// The end of each host's `Retry-After` as it was last stored, so that many equal answers cause one write.
final class ReportedWaits: Sendable {
    private let waits = Mutex(LRUCache<String, WallTime>(countLimit: 10_000))

    /// - Returns: whether it is later than the stored time by more than a second.
    func isNews(_ host: String, until time: WallTime) -> Bool {
        waits.withLock { waits in
            if let known = waits.peek(host), known >= time - 1_000 { return false }
            waits.insert(time, for: host)
            return true
        }
    }

    /// Forgets the time, since it could not be stored.
    func forget(_ host: String) { waits.withLock { _ = $0.remove(host) } }
}
