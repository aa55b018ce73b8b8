// What is known of hosts, by this downloader and by others.
extension WaitingQueue {
    mutating func adopt(
        _ host: String, since: ContinuousClock.Instant, last: ContinuousClock.Instant, _ failure: DownloadFailure,
    ) {
        makeHost(host)
        hosts[host]?.gate.adopt(since: since, last: last, failure)
    }

    mutating func noteAnswered(_ host: String) {
        if answered.count < 100_000 { answered.insert(host) }
        hosts[host]?.gate.noteAnswered()
    }

    mutating func park(_ host: String, _ now: ContinuousClock.Instant) {
        hosts[host]?.gate.park(now)
        noteBlock(host)
    }

    func givenUp(_ host: String, now: ContinuousClock.Instant) -> HostSilence? {
        guard let gate = hosts[host]?.gate, gate.isGivenUp(now) else { return nil }
        return gate.silence(now)
    }

    /// - Parameter shares: of each host, nothing of one that isn't named; nil for all.
    mutating func setShares(_ shares: [String: HostShare]?) {
        guard shares != nil || self.shares != nil else { return }
        self.shares = shares
        for (name, host) in hosts {
            let share = shares.map { $0[name] ?? .none }
            guard host.gate.share != share else { continue }
            host.gate.share = share
            offer(name)
        }
    }
}
