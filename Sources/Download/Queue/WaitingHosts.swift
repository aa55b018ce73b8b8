import Core

/// The state of hosts, as this worker and others know it, and the removal of requests that wait for them.
extension WaitingQueue {
    mutating func adopt(
        _ host: String, since: ContinuousClock.Instant, last: ContinuousClock.Instant, _ failure: Failure,
    ) {
        makeHost(host).gate.adopt(since: since, last: last, failure)
    }

    mutating func noteAnswered(_ host: String) {
        if answered.count < 100_000 { answered.insert(host) }
        hosts[host]?.gate.noteAnswered()
    }

    mutating func openCircuit(_ host: String, _ now: ContinuousClock.Instant) {
        guard let host = hosts[host] else { return }
        openCircuit(host, now)
    }

    private mutating func openCircuit(_ host: Host, _ now: ContinuousClock.Instant) {
        host.gate.openCircuit(now)
        noteBlock(host)
    }

    func givenUp(_ host: String, now: ContinuousClock.Instant) -> HostOutage? {
        guard let gate = hosts[host]?.gate, gate.isGivenUp(now) else { return nil }
        return gate.silence(now)
    }

    /// - Parameter shares: the share of each host; a host that is not named gets none. Nil for all.
    mutating func setShares(_ shares: [String: HostShare]?) {
        guard shares != nil || self.shares != nil else { return }
        self.shares = shares
        for (name, host) in hosts {
            let share = shares.map { $0[name] ?? .none }
            guard host.gate.share != share else { continue }
            host.gate.share = share
            offer(host)
        }
    }

    /// Whether the host has stalled transfers.
    func isStalled(_ host: String) -> Bool { hosts[host]?.stalled ?? 0 > 0 }

    mutating func changeStalled(_ host: String, by change: Int) { hosts[host]?.stalled += change }

    /// Whether the host has never answered, as far as the queue remembers.
    func hasNeverResponded(_ host: String) -> Bool { hosts[host].map { !$0.gate.hasAnswered } ?? true }

    // MARK: - Requests that are sent away, to come again later

    /// Removes the requests that wait for hosts which are given up, or blocked for longer than `time`. Hosts whose
    /// patience is used up are given up by this call.
    mutating func removeHopeless(longerThan time: Duration, now: ContinuousClock.Instant) -> [QueuedTransfer] {
        var found: [QueuedTransfer] = []
        for host in hosts.values where host.live > 0 {
            let isGivenUp = host.gate.isGivenUp(now)
            if isGivenUp, host.gate.blockedUntil == nil { openCircuit(host, now) }
            guard isGivenUp || host.gate.blockedUntil.map({ $0 - now > time }) ?? false else { continue }
            for position in host.positions.unordered where waiting[position.id]?.position == position {
                if let queued = waiting[position.id]?.queued { found.append(queued) }
            }
        }
        for queued in found { _ = remove(queued.id) }
        return found
    }

    /// Removes the last requests of the hosts where more than `limit` wait; they may come again later.
    mutating func shed(over limit: Int) -> [QueuedTransfer] {
        var shed: [QueuedTransfer] = []
        for host in hosts.values where host.live > limit {
            let valid = host.positions.unordered.filter { waiting[$0.id]?.position == $0 }.sorted()
            for position in valid.dropFirst(limit) {
                if let queued = waiting[position.id]?.queued { shed.append(queued) }
            }
        }
        for queued in shed { _ = remove(queued.id) }
        return shed
    }
}
