import Core
import SystemPackage
import Testing

@testable import Download

/// The window and the circuit of a host, with times of the test's own.
@Suite(.timeLimit(.minutes(15))) struct HostGateTests {
    private let start = ContinuousClock.now

    private func gate(_ limits: HostLimits = HostLimits(perHost: 8)) -> HostGate {
        var circuitBreaker = CircuitBreakerRules()
        circuitBreaker.failures = 3
        return HostGate(limits: limits, circuitBreaker: circuitBreaker)
    }

    private static let unreachable = HostSignal.unreachable(Failure(.connect, "It can't be reached."), isFirst: true)
    private static let again = HostSignal.unreachable(Failure(.timeout, "It took too long."), isFirst: false)

    private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test func aBucketLetsABurstThroughAndThenItsRate() {
        let gate = gate(HostLimits(perHost: 100, rate: 2, burst: 3))
        for _ in 0..<3 {
            #expect(gate.mayStart(running: 0))
            gate.started(at: at(0))
        }
        #expect(!gate.mayStart(running: 0))
        #expect(gate.heldUntil == at(0.5))
        gate.release(at(0.4))
        #expect(!gate.mayStart(running: 0))
        gate.release(at(0.5))
        #expect(gate.mayStart(running: 0))
        gate.started(at: at(0.5))
        #expect(gate.heldUntil == at(1))
    }

    @Test func a429HalvesTheWindowOnceForRequestsThatRanTogether() {
        let gate = gate()
        gate.learn(.tooMuch, start: at(0), now: at(1))
        gate.learn(.tooMuch, start: at(0.5), now: at(1.1))
        #expect(gate.window == 4)
        gate.learn(.tooMuch, start: at(2), now: at(3))
        #expect(gate.window == 2)
        #expect(gate.mayStart(running: 1))
        #expect(!gate.mayStart(running: 2))
    }

    @Test func theWindowGrowsByOneAfterAsManySuccessesAsItsWidth() {
        let gate = gate()
        gate.learn(.tooMuch, start: at(0), now: at(1))
        for _ in 0..<5 { gate.learn(.answered, start: at(2), now: at(3)) }
        #expect(gate.window > 5 && gate.window < 5.2)
        for _ in 0..<40 { gate.learn(.answered, start: at(2), now: at(3)) }
        #expect(gate.window == 8)
        #expect(gate.isPristine)
    }

    @Test func oneURLsRepeatedTimeoutsOpenNoCircuitOfAHostThatAnswers() {
        let gate = gate()
        gate.learn(.answered, start: at(0), now: at(1))
        gate.learn(Self.unreachable, start: at(1), now: at(2))
        for n in 2..<40 { gate.learn(Self.again, start: at(Double(n)), now: at(Double(n) + 1)) }
        #expect(gate.block == nil && !gate.isProbed)
        #expect(gate.mayStart(running: 7))
        // Other URLs that fail too are the host's fault.
        for n in 50..<52 { gate.learn(Self.unreachable, start: at(Double(n)), now: at(Double(n) + 1)) }
        #expect(gate.block == .circuitOpen)
        // So is a probe that fails, whichever URL it was made with.
        gate.release(at(1_000))
        gate.learn(Self.again, start: at(1_000), now: at(1_001))
        #expect(gate.block == .circuitOpen)
    }

    @Test func repeatedFailuresOfOneURLOpenTheCircuitOfANewHost() {
        let gate = gate()
        gate.learn(Self.unreachable, start: at(1), now: at(2))
        for n in 2..<4 { gate.learn(Self.again, start: at(Double(n)), now: at(Double(n) + 1)) }
        #expect(gate.block == .circuitOpen)
    }

    /// Repeated failures of one URL don't slow down the other URLs of its host.
    @Test func oneURLsRepeated503sDoNotNarrowTheWindow() {
        let gate = gate()
        for step in 0..<100 {
            let now = at(Double(step))
            gate.learn(.answered, start: now, now: now)
            gate.learn(.unavailable(isFirst: false), start: now, now: now)
        }
        #expect(gate.window == 8)
    }

    @Test func theWindowStaysAtLeastOneIfSomeURLsAnswer503() {
        let gate = gate()
        for step in 0..<200 {
            let now = at(Double(step))
            // Five of twelve, which is less than most.
            gate.learn(step % 12 < 5 ? .unavailable(isFirst: true) : .answered, start: now, now: now)
            #expect(gate.window >= 1 || gate.width.isMostlyUnavailable, "\(step)")
        }
        for step in 200..<220 {
            let now = at(Double(step))
            gate.learn(.answered, start: now, now: now)
        }
        gate.started(at: at(300))
        #expect(gate.heldUntil == nil)
    }

    @Test func theWindowFallsBelowOneIfMostURLsAnswer503() {
        let gate = gate()
        for step in 0..<10 { gate.learn(.unavailable(isFirst: true), start: at(Double(step)), now: at(Double(step))) }
        #expect(gate.window < 1)
        gate.started(at: at(20))
        #expect(gate.heldUntil.map { $0 <= at(24) } == true)
        for step in 21..<26 { gate.learn(.answered, start: at(Double(step)), now: at(Double(step))) }
        #expect(gate.window >= 1)
    }

    @Test func aWindowBelowOneMeansPausesOfSeconds() {
        let gate = gate()
        for step in 0..<20 { gate.learn(.tooMuch, start: at(Double(step) + 0.5), now: at(Double(step) + 0.6)) }
        #expect(gate.window == HostWindow.narrowest)
        gate.started(at: at(100))
        #expect(gate.heldUntil == at(104))
    }

    @Test func anUnreachableHostsCircuitOpensIsProbedAndOpensForLonger() {
        let gate = gate()
        gate.learn(.answered, start: at(0), now: at(0))
        for _ in 0..<2 { gate.learn(Self.unreachable, start: at(0), now: at(1)) }
        #expect(gate.block == nil)
        gate.learn(Self.unreachable, start: at(0), now: at(1))
        #expect(gate.block == .circuitOpen)
        #expect(gate.blockedUntil == at(31))
        // One that was under way then says nothing new.
        gate.learn(Self.unreachable, start: at(0), now: at(2))
        #expect(gate.blockedUntil == at(31))
        gate.release(at(31))
        #expect(gate.mayStart(running: 0))
        #expect(!gate.mayStart(running: 1))
        gate.learn(Self.unreachable, start: at(31), now: at(32))
        #expect(gate.blockedUntil == at(92))
        gate.release(at(92))
        gate.learn(.answered, start: at(92), now: at(93))
        #expect(gate.mayStart(running: 7))
        #expect(gate.isPristine)
    }

    @Test func onlyConsecutiveFailuresCount() {
        let gate = gate()
        for _ in 0..<10 {
            for _ in 0..<2 { gate.learn(Self.unreachable, start: at(0), now: at(1)) }
            gate.learn(.answered, start: at(0), now: at(1))
        }
        #expect(gate.block == nil)
    }

    @Test func aShorterBlockDoesNotReplaceALongerBlock() {
        let gate = gate()
        gate.block(until: at(60), .retryAfter)
        gate.block(until: at(30), .circuitOpen)
        #expect(gate.blockedUntil == at(60))
        #expect(gate.block == .retryAfter)
    }

    @Test func aRestoredWindowAndCircuitCountHold() {
        let gate = gate()
        gate.learn(.answered, start: at(0), now: at(0))
        gate.restore(window: 2, circuitOpenCount: 1)
        #expect(gate.window == 2)
        #expect(!gate.mayStart(running: 1))
        gate.learn(Self.unreachable, start: at(0), now: at(0))
        #expect(gate.blockedUntil == at(60))
    }

    @Test func aNewHostIsGivenUpAfterItsPatienceAndAKnownHostIsNot() {
        let (stranger, known) = (gate(), gate())
        known.learn(.answered, start: at(0), now: at(0))
        for step in 1...4 {
            let now = at(Double(step) * 10)
            stranger.release(now)
            stranger.learn(Self.unreachable, start: now, now: now)
            known.learn(Self.unreachable, start: now, now: now)
            #expect(stranger.isGivenUp(now) == (step == 4))
        }
        #expect(!known.isGivenUp(at(1_000)))
        // It is probed while it is waited for, and then left alone for longer.
        #expect(stranger.blockedUntil == at(100))
        // After a time without requests it starts afresh.
        #expect(!stranger.isGivenUp(at(200)))
        stranger.learn(.answered, start: at(60), now: at(60))
        #expect(!stranger.isGivenUp(at(61)))
        #expect(stranger.block == nil)
    }

    @Test func failuresThatAnotherWorkerSawCount() {
        let gate = gate()
        gate.adopt(since: at(0), last: at(29), Failure(.timeout, "It said nothing."))
        #expect(!gate.isGivenUp(at(29)))
        #expect(gate.isGivenUp(at(30)))
        gate.noteAnswered()
        #expect(!gate.isGivenUp(at(30)))
    }

    @Test func aHostWithoutAShareStartsNoRequestAndHasAReason() {
        let gate = gate()
        gate.share = HostShare.none
        #expect(!gate.mayStart(running: 0))
        #expect(gate.wait(of: "a.example", running: 0, now: at(0))?.reason.contains("--per-host") == true)
        gate.share = HostShare(slots: 2, parts: 2)
        #expect(gate.mayStart(running: 1))
        #expect(!gate.mayStart(running: 2))
    }

    @Test(arguments: [(1, 6), (2, 3), (3, 2), (9, 1)]) func theBurstIsSplitAmongTheWorkersOfAHost(
        parts: Int, burst: Int
    ) {
        let gate = HostGate(limits: HostLimits(perHost: 100, rate: 1, burst: 6), circuitBreaker: CircuitBreakerRules())
        gate.share = HostShare(slots: 100, parts: parts)
        var started = 0
        while gate.mayStart(running: 0), started < 20 {
            gate.started(at: at(0))
            started += 1
        }
        #expect(started == burst)
    }

    static let lessons: [(FailureClass, String)] = [
        (.dns, "unreachable"), (.connect, "unreachable"), (.timeout, "unreachable"), (.tlsHandshake, "unreachable"),
        (.http(429), "tooMuch"), (.http(503), "unavailable"), (.http(500), "answered"), (.http(404), "answered"),
        (.connectionLost, "hungUp"), (.truncated, "answered"), (.tlsCertificate, "answered"),
        (.cancelled, "nothing"), (.diskFull, "nothing"), (.diskError, "nothing"), (.forbiddenAddress, "nothing"),
    ]

    @Test(arguments: lessons.indices) func everyFailureClassIsASignalForTheHost(_ index: Int) {
        let (code, signal) = Self.lessons[index]
        #expect("\(HostSignal(.failed(Failure(code, "It failed."))))".hasPrefix(signal))
    }

    @Test func aHostIsNewUntilItAnswers() {
        let gate = gate()
        gate.learn(Self.unreachable, start: at(0), now: at(1))
        gate.learn(.nothing, start: at(0), now: at(1))
        #expect(!gate.hasAnswered)
        gate.learn(.tooMuch, start: at(0), now: at(1))
        #expect(gate.hasAnswered)
    }

    @Test func aNewHostHasAShorterPatience() {
        let patience = Duration.seconds(8)
        func isStalled(_ seconds: Double, isNew: Bool, hasNeverResponded: Bool) -> Bool {
            DownloadScheduler.IdleTime(time: .seconds(seconds), isNew: isNew).isStalled(
                hasNeverResponded: hasNeverResponded, patience: patience)
        }
        #expect(isStalled(1, isNew: true, hasNeverResponded: true))
        #expect(!isStalled(0.9, isNew: true, hasNeverResponded: true))
        #expect(!isStalled(7.9, isNew: true, hasNeverResponded: false))
        // It has begun to speak.
        #expect(!isStalled(7.9, isNew: false, hasNeverResponded: true))
        #expect(isStalled(8, isNew: false, hasNeverResponded: true))
    }
}
