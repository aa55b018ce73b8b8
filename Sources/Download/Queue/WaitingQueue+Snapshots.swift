extension WaitingQueue {
    /// The hosts that have anything to tell.
    func snapshots(now: ContinuousClock.Instant) -> [HostSnapshot] {
        hosts.map { name, host in
            HostSnapshot(
                host: name, running: host.running, waiting: host.live, window: host.gate.window,
                widest: host.gate.limits.perHost, block: host.gate.block,
                blockedFor: host.gate.blockedUntil.map { max(.zero, $0 - now) },
                parks: host.gate.parks, started: host.gate.started)
        }
    }
}
