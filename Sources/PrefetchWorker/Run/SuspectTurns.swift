internal import Jobs
internal import Synchronization

/// Decides when suspects (items that were active when workers died) run, apart from all other items.
///
/// They wait until nothing else is left to do, and for half a minute at most. A worker must have lived for a while
/// before it runs them. So a worker that is repeatedly killed from outside works on all other items meanwhile.
final class SuspectTurns: Sendable {
    /// How long suspects wait at most while there is other work, in milliseconds.
    static let patience: Int64 = 30_000
    private static let lookEvery: Int64 = 1_000

    private struct State {
        /// The fewest deaths among suspects.
        var least: Int?
        /// Since when the suspects wait.
        var waitingSince: Int64?
        var lookedAt: Int64?
        /// Whether a group of suspects is in flight now.
        var isTurn = false
    }

    private let start: Int64
    private let state = Mutex(State())

    init(start: Int64 = monotonicMilliseconds()) { self.start = start }

    /// Whether no other items may be claimed: a group of suspects is in flight, or starts as soon as no other item is
    /// in flight.
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

    /// Whether a group of suspects is in flight.
    var isTurn: Bool { state.withLock { $0.isTurn } }

    /// The number of deaths of the suspects that may be claimed now, if nothing else is in flight; nil for none.
    func next(at now: Int64 = monotonicMilliseconds()) -> Int? {
        state.withLock { state in isOldEnough(for: state.least, at: now) ? state.least : nil }
    }

    /// Whether to look for suspects in the database.
    func isTimeToLook(at now: Int64 = monotonicMilliseconds()) -> Bool {
        state.withLock { state in
            guard state.lookedAt.map({ now - $0 >= Self.lookEvery }) ?? true else { return false }
            state.lookedAt = now
            return true
        }
    }

    /// - Parameter least: the fewest deaths among suspects; nil if there are none.
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
