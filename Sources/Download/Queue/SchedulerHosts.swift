import Core
import Synchronization

// The state and limits of hosts. Calls from any thread.
extension DownloadScheduler {
    func block(_ host: String, until: ContinuousClock.Instant, _ reason: HostBlock) {
        state.withLock {
            $0.queue.block(host, until: until, reason)
            $0.ring()
        }
    }

    func restore(_ host: String, window: Double?, circuitOpenCount: Int) {
        state.withLock { $0.queue.restore(host, window: window, circuitOpenCount: circuitOpenCount) }
    }

    func blocked(_ host: String) -> (until: ContinuousClock.Instant, reason: HostBlock)? {
        state.withLock { $0.queue.blocked(host) }
    }

    func adopt(_ host: String, _ silence: HostOutage) {
        let now = ContinuousClock.now
        let failure = Failure(silence.failure, silence.message, host: host)
        state.withLock { $0.queue.adopt(host, since: now - silence.since, last: now - silence.last, failure) }
    }

    func noteAnswered(_ host: String) { state.withLock { $0.queue.noteAnswered(host) } }

    func givenUp(_ host: String) -> HostOutage? { state.withLock { $0.queue.givenUp(host, now: .now) } }

    func waits(longerThan time: Duration) -> [DownloadWait] {
        state.withLock { $0.queue.waits(longerThan: time, now: .now) }
    }

    func setShares(concurrency: Int?, hosts: [String: HostShare]?) {
        state.withLock {
            $0.share = concurrency
            $0.queue.setShares(hosts)
            $0.ring()
        }
    }

    func confirmShares(asOf time: ContinuousClock.Instant) {
        state.withLock {
            if $0.lease.confirm(asOf: time, now: .now) { $0.ring() }
        }
    }

    var holdsBack: Bool { state.withLock { $0.queue.holdsBack } }

    func snapshots() -> [HostSnapshot] { state.withLock { $0.queue.snapshots(now: .now) } }

    func setLimits(concurrency: Int, limits: HostLimits, special: [String: HostLimits]) {
        state.withLock {
            $0.concurrency = concurrency
            if $0.headRoom > 0 { $0.maxUnconsumed = concurrency + $0.headRoom }
            $0.queue.setLimits(limits, special: special)
            $0.ring()
        }
    }
}
