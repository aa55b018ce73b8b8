internal import Dispatch
internal import Glibc
internal import Jobs
internal import Synchronization

/// How often the services of a run look at the database.
///
/// While there is work they look many times a second. A worker without work looks every five seconds, and at once when
/// a program changes the queue.
final class PollingPace: Sendable {
    /// The time between two looks of a worker without work.
    static let rest = Duration.seconds(5)

    private struct State {
        var isResting = false
        var sleeps: [Int: Task<Void, Never>] = [:]
        var nextSleep = 0
    }

    private let state = Mutex(State())
    private let watch: (any ChangeWatch)?
    private let wakeup: Wakeup

    /// - Parameter wakeup: rung when the database has changed.
    init(database: String, wakeup: Wakeup) {
        self.wakeup = wakeup
        if let changes = QueueChanges(database: database) {
            watch = changes
            return
        }
        // SQLite's log is beside the file itself, not beside a link to it.
        let resolved = realpath(database, nil)
        defer { free(resolved) }
        watch = LogWatch(log: (resolved.map { String(cString: $0) } ?? database) + "-wal")
    }

    /// Whether the worker has no work.
    var isResting: Bool { state.withLock { $0.isResting } }

    /// Lets the services look rarely until the database changes.
    ///
    /// - Returns: false if changes can't be noticed here, so that the services go on looking often.
    func beginRest() -> Bool {
        if state.withLock({ $0.isResting }) { return true }
        // Before the watch begins: it may end the rest at once.
        state.withLock { $0.isResting = true }
        if watch?.begin({ [weak self] in self?.endRest() }) == true { return true }
        endRest()
        return false
    }

    /// Wakes the services that sleep.
    func endRest() {
        let sleeps = state.withLock { state in
            state.isResting = false
            defer { state.sleeps = [:] }
            return Array(state.sleeps.values)
        }
        for sleep in sleeps { sleep.cancel() }
        wakeup.ring()
    }

    /// The time between two rounds of a service. Cancellation ends it, too.
    ///
    /// - Parameter rest: the time if the worker has no work, unless the database changes before.
    func pause(_ time: Duration, rest: Duration = PollingPace.rest) async {
        let sleep = state.withLock { state -> (number: Int, task: Task<Void, Never>)? in
            guard state.isResting, rest > time else { return nil }
            state.nextSleep += 1
            // Best effort: a cancelled sleep ends early.
            let task = Task { _ = try? await Task.sleep(for: rest) }
            state.sleeps[state.nextSleep] = task
            return (state.nextSleep, task)
        }
        guard let sleep else {
            // Best effort: cancellation ends the sleep, and then the caller's loop.
            try? await Task.sleep(for: time)
            return
        }
        await withTaskCancellationHandler {
            await sleep.task.value
        } onCancel: {
            sleep.task.cancel()
        }
        state.withLock { $0.sleeps[sleep.number] = nil }
    }
}

/// Notices changes of the database without polling.
private protocol ChangeWatch: Sendable {
    /// - Parameter onChange: called once, after the next change.
    /// - Returns: whether changes are noticed.
    func begin(_ onChange: @escaping @Sendable () -> Void) -> Bool
}

extension QueueChanges: ChangeWatch {}

/// Notices writes to SQLite's log by inotify, without polling.
///
/// The watch costs a busy worker nothing, since the kernel reports one change, and no more until the watch asks again.
/// See https://man7.org/linux/man-pages/man7/inotify.7.html
private final class LogWatch: ChangeWatch {
    private let log: String
    private let descriptor: CInt
    /// Dispatch's sources may be used by several threads.
    nonisolated(unsafe) private let source: any DispatchSourceRead
    private let onChange = Mutex<(@Sendable () -> Void)?>(nil)

    /// - Returns: nil where the kernel has no inotify left for this user.
    init?(log: String) {
        self.log = log
        descriptor = inotify_init1(CInt(IN_NONBLOCK | IN_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        source = DispatchSource.makeReadSource(
            fileDescriptor: descriptor, queue: DispatchQueue(label: "prefetch-worker.log-watch"))
        source.setEventHandler { [weak self] in self?.tell() }
        source.setCancelHandler { [descriptor] in close(descriptor) }
        source.resume()
    }

    deinit { source.cancel() }

    func begin(_ onChange: @escaping @Sendable () -> Void) -> Bool {
        self.onChange.withLock { $0 = onChange }
        return inotify_add_watch(descriptor, log, UInt32(IN_MODIFY) | IN_ONESHOT) >= 0
    }

    private func tell() {
        var events = [UInt8](repeating: 0, count: 4_096)
        while read(descriptor, &events, events.count) > 0 {}
        let onChange = onChange.withLock { onChange in
            defer { onChange = nil }
            return onChange
        }
        onChange?()
    }
}
