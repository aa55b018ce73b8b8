import Testing

@testable import Download

/// How long a downloader may start requests without a sign of the other workers.
@Suite("The lease of shares") struct ShareLeaseTests {
    private let start = ContinuousClock.now

    /// A class, since `#expect` changes no value.
    private final class Kept {
        private var lease = ShareLease()

        func confirm(asOf time: ContinuousClock.Instant, now: ContinuousClock.Instant) -> Bool {
            lease.confirm(asOf: time, now: now)
        }

        func allowsStarts(_ now: ContinuousClock.Instant, isSharing: Bool) -> Bool {
            lease.allowsStarts(now, isSharing: isSharing)
        }

        func allowsSending(_ now: ContinuousClock.Instant, isSharing: Bool) -> Bool {
            lease.allowsSending(now, isSharing: isSharing)
        }
    }

    private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test func `Without other workers nothing has to be confirmed`() {
        let lease = Kept()
        for time in [0.0, 100, 200] { #expect(lease.allowsStarts(at(time), isSharing: false)) }
    }

    @Test func `A worker beside others stops after 15 s without a confirmation`() {
        let lease = Kept()
        #expect(!lease.confirm(asOf: at(0), now: at(0)))
        for time in stride(from: 0.0, to: 15, by: 0.5) { #expect(lease.allowsStarts(at(time), isSharing: true)) }
        #expect(!lease.allowsStarts(at(15), isSharing: true))
        #expect(lease.confirm(asOf: at(15.5), now: at(16)))
        #expect(lease.allowsStarts(at(16), isSharing: true))
    }

    @Test func `A single worker goes on while the database is locked, but not after a suspension`() {
        let lease = Kept()
        _ = lease.confirm(asOf: at(0), now: at(0))
        for time in stride(from: 0.0, to: 60, by: 1) { #expect(lease.allowsStarts(at(time), isSharing: false)) }
        #expect(!lease.allowsStarts(at(90), isSharing: false))
        #expect(!lease.allowsStarts(at(91), isSharing: false))
        // What others said before the suspension is too old.
        #expect(!lease.confirm(asOf: at(60), now: at(91)))
        #expect(!lease.allowsStarts(at(92), isSharing: false))
        #expect(lease.confirm(asOf: at(92), now: at(92)))
        #expect(lease.allowsStarts(at(93), isSharing: false))
    }

    @Test func `A short gap, and one with a recent confirmation, stop nothing`() {
        let lease = Kept()
        _ = lease.confirm(asOf: at(0), now: at(0))
        #expect(lease.allowsStarts(at(1), isSharing: true))
        #expect(lease.allowsStarts(at(10), isSharing: true))
        _ = lease.confirm(asOf: at(20), now: at(20))
        #expect(lease.allowsStarts(at(30), isSharing: true))
    }

    @Test func `A request that was started before a suspension is not sent after it`() {
        for isSharing in [true, false] {
            let lease = Kept()
            #expect(lease.allowsSending(at(100), isSharing: isSharing), "Nothing has to be confirmed.")
            _ = lease.confirm(asOf: at(0), now: at(0))
            #expect(lease.allowsStarts(at(1), isSharing: isSharing))
            #expect(lease.allowsSending(at(2), isSharing: isSharing))
            #expect(!lease.allowsSending(at(30), isSharing: isSharing))
            #expect(!lease.allowsStarts(at(31), isSharing: isSharing))
            #expect(!lease.allowsSending(at(31), isSharing: isSharing))
            _ = lease.confirm(asOf: at(32), now: at(32))
            #expect(lease.allowsSending(at(32), isSharing: isSharing))
        }
    }
}
