import Testing

@testable import PrefetchWorker

@Suite("Turns of suspects", .timeLimit(.minutes(15)))
struct SuspectTurnsTests {
    @Test func `Suspects wait until a worker has lived for a while, and longer after more deaths`() {
        let turns = SuspectTurns(start: 0)
        turns.found(2, at: 10)
        #expect(turns.next(at: 999) == nil)
        #expect(turns.next(at: 1_000) == 2)
        turns.found(4, at: 1_000)
        #expect(turns.next(at: 2_999) == nil)
        #expect(turns.next(at: 3_000) == 4)
        turns.found(nil, at: 3_000)
        #expect(turns.next(at: 9_000) == nil)
    }

    @Test func `Suspects have their turn after half a minute beside endless other work`() {
        let turns = SuspectTurns(start: 0)
        turns.found(2, at: 100)
        #expect(!turns.holdsBack(inFlight: 200, at: 30_099))
        // From now on nothing else is claimed.
        #expect(turns.holdsBack(inFlight: 200, at: 30_100))
        #expect(!turns.isTurn)
        turns.began(at: 31_000)
        #expect(turns.isTurn)
        #expect(turns.holdsBack(inFlight: 16, at: 31_100))
        // When they have ended, the others go on for as long again.
        #expect(!turns.holdsBack(inFlight: 0, at: 32_000))
        #expect(!turns.holdsBack(inFlight: 200, at: 60_000))
        #expect(turns.holdsBack(inFlight: 200, at: 61_000))
    }

    @Test func `The database is queried once a second, and at once after a turn`() {
        let turns = SuspectTurns(start: 0)
        #expect(turns.isTimeToLook(at: 0))
        #expect(!turns.isTimeToLook(at: 999))
        #expect(turns.isTimeToLook(at: 1_000))
        turns.found(2, at: 1_000)
        turns.began(at: 1_100)
        #expect(!turns.holdsBack(inFlight: 0, at: 1_200))
        #expect(turns.isTimeToLook(at: 1_200))
    }
}
