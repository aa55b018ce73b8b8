internal import Jobs
internal import Synchronization

/// When items that several workers died of have their turn, apart from all others.
///
/// They wait until nothing else is left to do, and for half a minute at most where there always is. A worker has to have lived
/// for a while before it takes them: one that is killed from outside every other moment works on everything else meanwhile.
final class SuspectTurns: Sendable {
    /// The longest that such items wait beside others that never end, in milliseconds.
    static let patience: Int64 = 30_000
    private static let lookEvery: Int64 = 1_000

    private struct State {
        /// The fewest deaths among such items.
        var least: Int?
        /// Since when they wait.
        var waitingSince: Int64?
        var lookedAt: Int64?
        /// Whether a group of them is in flight.
        var isTurn = false
    }

    private let start: Int64
    private let state = Mutex(State())

    init(start: Int64 = monotonicMilliseconds()) { self.start = start }

    /// Whether nothing else is claimed now: a group of them is in flight, or is to be as soon as nothing else is.
    func holdsBack(inFlight: Int, at now: Int64 = monotonicMilliseconds()) -> Bool {
        state.withLock { state in
            if state.isTurn {
                state.isTurn = inFlight > 0
                if !state.isTurn { state.lookedAt = nil }
            }
            guard !state.isTurn else { return true }
            guard isOldEnough(for: state.least, at: now) else { return false }
            return state.waitingSince.map { now - $0 >= Self.patience } ?? false
        }
    }

    /// Whether a group of them is in flight.
    var isTurn: Bool { state.withLock { $0.isTurn } }

    /// How many deaths the items have seen that may be claimed now, when nothing else is in flight; nil for none.
    func next(at now: Int64 = monotonicMilliseconds()) -> Int? {
        state.withLock { state in isOldEnough(for: state.least, at: now) ? state.least : nil }
    }

    /// Whether it is time to ask the database for them.
    func isTimeToLook(at now: Int64 = monotonicMilliseconds()) -> Bool {
        state.withLock { state in
            guard state.lookedAt.map({ now - $0 >= Self.lookEvery }) ?? true else { return false }
            state.lookedAt = now
            return true
        }
    }

    /// - Parameter least: the fewest deaths among them; nil where there are none.
    func found(_ least: Int?, at now: Int64 = monotonicMilliseconds()) {
        state.withLock { state in
            state.least = least
            state.waitingSince = least == nil ? nil : state.waitingSince ?? now
        }
    }

    func began(at now: Int64 = monotonicMilliseconds()) {
        state.withLock { state in
            state.isTurn = true
            state.waitingSince = now
        }
    }

    private func isOldEnough(for deaths: Int?, at now: Int64) -> Bool {
        deaths.map { now - start >= Suspicion.delay(deaths: $0) } ?? false
    }
}
