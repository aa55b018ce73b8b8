import SystemPackage
import Testing

@testable import Download

/// What a host is allowed, by instants that a test makes up.
@Suite(.timeLimit(.minutes(15))) struct HostGateTests {
    private let start = ContinuousClock.now

    private func gate(_ limits: HostLimits = HostLimits(perHost: 8)) -> HostGate {
        var parking = ParkingRules()
        parking.failures = 3
        return HostGate(limits: limits, parking: parking)
    }

    private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

    @Test func aBucketLetsABurstThroughAndThenItsRate() {
        var gate = gate(HostLimits(perHost: 100, rate: 2, burst: 3))
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

    @Test func tooMuchHalvesTheWindowOnceForAllThatRanTogether() {
        var gate = gate()
        gate.learn(.tooMuch, start: at(0), now: at(1))
        gate.learn(.tooMuch, start: at(0.5), now: at(1.1))
        #expect(gate.window == 4)
        gate.learn(.tooMuch, start: at(2), now: at(3))
        #expect(gate.window == 2)
        #expect(gate.mayStart(running: 1))
        #expect(!gate.mayStart(running: 2))
    }

    @Test func theWindowGrowsByOneForAsManySuccessesAsItIsWide() {
        var gate = gate()
        gate.learn(.tooMuch, start: at(0), now: at(1))
        for _ in 0..<5 { gate.learn(.answered, start: at(2), now: at(3)) }
        #expect(gate.window > 5 && gate.window < 5.2)
        for _ in 0..<40 { gate.learn(.answered, start: at(2), now: at(3)) }
        #expect(gate.window == 8)
        #expect(gate.isPristine)
    }

    @Test func belowOneThereArePausesAndNeverLongerThanFifteenSeconds() {
        var gate = gate()
        for step in 0..<20 { gate.learn(.tooMuch, start: at(Double(step) + 0.5), now: at(Double(step) + 0.6)) }
        #expect(gate.window == HostGate.narrowest)
        gate.started(at: at(100))
        #expect(gate.heldUntil == at(115))
    }

    @Test func aHostThatIsNotReachedIsParkedProbedAndParkedForLonger() {
        var gate = gate()
        for _ in 0..<2 { gate.learn(.unreachable, start: at(0), now: at(1)) }
        #expect(gate.block == nil)
        gate.learn(.unreachable, start: at(0), now: at(1))
        #expect(gate.block == .parked)
        #expect(gate.blockedUntil == at(31))
        // One that was under way then says nothing new.
        gate.learn(.unreachable, start: at(0), now: at(2))
        #expect(gate.blockedUntil == at(31))
        gate.release(at(31))
        #expect(gate.mayStart(running: 0))
        #expect(!gate.mayStart(running: 1))
        gate.learn(.unreachable, start: at(31), now: at(32))
        #expect(gate.blockedUntil == at(92))
        gate.release(at(92))
        gate.learn(.answered, start: at(92), now: at(93))
        #expect(gate.mayStart(running: 7))
        #expect(gate.isPristine)
    }

    @Test func failuresCountInARowOnly() {
        var gate = gate()
        for _ in 0..<10 {
            for _ in 0..<2 { gate.learn(.unreachable, start: at(0), now: at(1)) }
            gate.learn(.answered, start: at(0), now: at(1))
        }
        #expect(gate.block == nil)
    }

    @Test func aShorterBlockDoesNotUndoALongerOne() {
        var gate = gate()
        gate.block(until: at(60), .asked)
        gate.block(until: at(30), .parked)
        #expect(gate.blockedUntil == at(60))
        #expect(gate.block == .asked)
    }

    @Test func whatWasLearntBeforeARestartHolds() {
        var gate = gate()
        gate.restore(window: 2, parks: 1)
        #expect(gate.window == 2)
        #expect(!gate.mayStart(running: 1))
        gate.learn(.unreachable, start: at(0), now: at(0))
        #expect(gate.blockedUntil == at(60))
    }

    static let lessons: [(DownloadFailure.Code, String)] = [
        (.dns, "unreachable"), (.connect, "unreachable"), (.timeout, "unreachable"), (.tlsHandshake, "unreachable"),
        (.http(429), "tooMuch"), (.http(503), "tooMuch"), (.http(500), "answered"), (.http(404), "answered"),
        (.connectionLost, "answered"), (.truncated, "answered"), (.tlsCertificate, "answered"),
        (.cancelled, "nothing"), (.disk(.noSpace), "nothing"), (.forbiddenAddress, "nothing"),
    ]

    @Test(arguments: lessons.indices) func everyEndTeachesSomething(_ index: Int) {
        let (code, lesson) = Self.lessons[index]
        #expect("\(HostLesson(.failed(DownloadFailure(code, "It failed."))))" == lesson)
    }

    @Test func aHostIsAStrangerUntilItAnswers() {
        var gate = gate()
        gate.learn(.unreachable, start: at(0), now: at(1))
        gate.learn(.nothing, start: at(0), now: at(1))
        #expect(!gate.hasAnswered)
        gate.learn(.tooMuch, start: at(0), now: at(1))
        #expect(gate.hasAnswered)
    }

    @Test func aStrangerIsGivenLessPatience() {
        let patience = Duration.seconds(8)
        func isSilent(_ seconds: Double, isNew: Bool, isStranger: Bool) -> Bool {
            Exchange.Quiet(time: .seconds(seconds), isNew: isNew).isSilent(isStranger: isStranger, patience: patience)
        }
        #expect(isSilent(1, isNew: true, isStranger: true))
        #expect(!isSilent(0.9, isNew: true, isStranger: true))
        #expect(!isSilent(7.9, isNew: true, isStranger: false))
        // It has begun to speak.
        #expect(!isSilent(7.9, isNew: false, isStranger: true))
        #expect(isSilent(8, isNew: false, isStranger: true))
    }
}
