public import Jobs
internal import Synchronization

/// Requests a worker's stop: it claims nothing more, and items in flight have the grace period to end.
public final class StopSignal: Sendable {
    private struct State {
        var isRequested = false
        var waiting: [CheckedContinuation<Void, Never>] = []
        var listeners: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())

    public init() {}

    public var isRequested: Bool { state.withLock { $0.isRequested } }

    public func request() {
        let (waiting, listeners) = state.withLock { state in
            state.isRequested = true
            defer { (state.waiting, state.listeners) = ([], []) }
            return (state.waiting, state.listeners)
        }
        for continuation in waiting { continuation.resume() }
        for listener in listeners { listener() }
    }

    /// Calls `listener` once, when a stop is requested; immediately if it was requested before.
    public func whenRequested(_ listener: @escaping @Sendable () -> Void) {
        let isRequested = state.withLock { state in
            if !state.isRequested { state.listeners.append(listener) }
            return state.isRequested
        }
        if isRequested { listener() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isRequested = state.withLock { state in
                if !state.isRequested { state.waiting.append(continuation) }
                return state.isRequested
            }
            if isRequested { continuation.resume() }
        }
    }
}

/// The signals that wake a claim loop and end it.
struct RunSignals: Sendable {
    let wakeup: Wakeup
    let stop: StopSignal
    let pace: PollingPace

    init(stop: StopSignal, database: String) {
        wakeup = Wakeup()
        self.stop = stop
        pace = PollingPace(database: database, wakeup: wakeup)
        // Wakes a sleeping loop immediately, even if the housekeeper is busy.
        stop.whenRequested { [wakeup] in wakeup.ring() }
    }
}

extension WriteWaiting {
    /// The same without announcements, for a program whose other store announces the same wait.
    public var silent: WriteWaiting { WriteWaiting(limit: limit) }

    /// The same for a worker: it waits for a server that is away until a stop is requested. From then on, no call waits
    /// longer than `limit` says.
    ///
    /// - Parameter limit: gets the milliseconds since the stop; returns how many a write may wait.
    public func ending(at stop: StopSignal, limit: @escaping @Sendable (Int64) -> Int64) -> WriteWaiting {
        let stoppedAt = Atomic(Int64.max)
        stop.whenRequested { stoppedAt.store(monotonicMilliseconds(), ordering: .relaxed) }
        var waiting = self
        waiting.outlastsOutages = true
        waiting.limitOfStop = {
            let time = stoppedAt.load(ordering: .relaxed)
            return time < .max ? limit(monotonicMilliseconds() - time) : nil
        }
        return waiting
    }
}
