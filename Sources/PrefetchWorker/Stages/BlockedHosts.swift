internal import Core
internal import Download
internal import Jobs
internal import Synchronization

/// Sends items away whose host is not to be asked now.
struct BlockedHosts: Sendable {
    /// How long an item waits in memory for a host whose circuit is open.
    static let longestWait = Duration.seconds(5)

    let downloader: Downloader
    let shedHosts: ShedHosts
    let now: @Sendable () -> WallTime

    /// The end of an item whose host is blocked for longer than it pays to keep the item in memory for; nil otherwise.
    ///
    /// To wait because the origin said so costs no try. To wait for a host that can't be reached does: else the items of
    /// one that is gone for good would wait for ever.
    ///
    /// - Parameter host: where a redirect has led; nil for the URL's own.
    func ending(of item: ClaimedItem, at host: String? = nil) throws(Failure) -> ItemEnding? {
        guard downloader.blocksHosts else { return nil }
        let host = host ?? HostNames.name(ofURL: item.url)
        guard let (instant, reason) = downloader.blocked(host) else { return nil }
        if let silence = downloader.givenUp(host) { return givenUp(host, silence) }
        let left = ContinuousClock.now.duration(to: instant)
        guard left > Self.longestWait else { return nil }
        switch reason {
        case .asked:
            return .wait(
                until: now() + left.milliseconds, host: host, reason: "\(host) asked to be left alone for a while.")
        case .parked:
            var failure = Failure(
                .connect, "\(host) could not be reached several times in a row, and is left alone.")
            failure.retryAfter = left
            failure.host = host
            failure.hasAsked = false
            throw failure
        }
    }

    /// The end of an item whose host has never answered and has had its time. It isn't listed: the host may come back.
    private func givenUp(_ host: String, _ silence: HostSilence) -> ItemEnding {
        var record = Failure(
            silence.failure,
            "\(host) has not answered for \(silence.since.components.seconds) s (--host-patience). \(silence.message)")
        record.host = host
        record.hasAsked = false
        record.isListed = false
        return .failed(record)
    }

    /// The end of an item that made room for those of other hosts.
    func crowded(_ host: String) -> ItemEnding {
        .wait(
            until: now() + shedHosts.delay(of: host), host: host, reason: "Many others wait for \(host), which is busy."
        )
    }
}

/// Hosts that have more items waiting than a worker can hold, and how many of those items were sent away.
final class ShedHosts: Sendable {
    private let sentAway = Mutex<[String: Int64]>([:])

    var hosts: [String] { sentAway.withLock { Array($0.keys) } }

    /// How long an item that makes room stays away, in milliseconds: longer the more went before it, so that those that
    /// come back don't push the others aside that had no turn yet.
    func delay(of host: String) -> Int64 {
        let count = sentAway.withLock { hosts in
            hosts[host, default: 0] += 1
            return hosts[host] ?? 1
        }
        return min(600_000, 5_000 + 2 * count)
    }

    func forget(_ host: String) { sentAway.withLock { $0[host] = nil } }
}
