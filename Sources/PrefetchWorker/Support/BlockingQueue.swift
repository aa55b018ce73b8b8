internal import DequeModule
internal import Dispatch
internal import Foundation
internal import Glibc
internal import Synchronization

/// Runs calls that block on the disk, or until space is reserved, at most `width` at a time and in order of request.
///
/// It has threads of its own. Swift's tasks and the database use the few threads of Dispatch; when blocked calls took
/// these, an import of 1,000 small files into a cache with a limit waited for more than a minute.
final class BlockingQueue: Sendable {
    private let threads: BlockingThreads

    init(_ label: String, width: Int = 1) {
        threads = BlockingThreads(label, width: width)
    }

    deinit { threads.close() }

    func run<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
        await withCheckedContinuation { continuation in
            threads.add { continuation.resume(returning: body()) }
        }
    }
}

/// Runs tasks on a thread of its own, so that callers that block all of Swift's threads can wait for them.
final class ThreadExecutor: TaskExecutor {
    private let threads: BlockingThreads

    init(_ label: String) {
        threads = BlockingThreads(label, width: 1)
    }

    deinit { threads.close() }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        threads.add { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
}

/// The threads of a queue. They begin when there is work for them, and end when the queue is closed.
private final class BlockingThreads: Sendable {
    private struct State {
        var calls: Deque<@Sendable () -> Void> = []
        var started = 0
        /// Threads that wait for a call.
        var idle = 0
        var isClosed = false
    }

    private let label: String
    private let width: Int
    private let state = Mutex(State())
    /// Signalled once for each call, and once for each thread at the end.
    private let ready = DispatchSemaphore(value: 0)

    init(_ label: String, width: Int) {
        self.label = label
        self.width = max(1, width)
    }

    func add(_ call: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.calls.append(call)
            guard state.started < width, state.idle < state.calls.count else { return false }
            state.started += 1
            return true
        }
        if needsThread { start() }
        ready.signal()
    }

    func close() {
        let started = state.withLock { state in
            state.isClosed = true
            return state.started
        }
        for _ in 0..<started { ready.signal() }
    }

    private func start() {
        let thread = Thread { [self] in
            // Signals are for the program's own threads; here they would interrupt system calls.
            var all = sigset_t()
            sigfillset(&all)
            pthread_sigmask(SIG_SETMASK, &all, nil)
            while let call = next() { call() }
        }
        thread.name = label
        thread.start()
    }

    /// Waits for a call; nil when the queue is closed.
    private func next() -> (@Sendable () -> Void)? {
        state.withLock { $0.idle += 1 }
        ready.wait()
        return state.withLock { state in
            state.idle -= 1
            return state.calls.popFirst()
        }
    }
}
