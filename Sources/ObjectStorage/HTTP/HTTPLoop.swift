internal import CCurl
internal import Core
internal import Glibc
internal import Synchronization

/// The state that callers share with the client's thread, and the loop of that thread. The client and the thread each
/// hold a reference.
///
/// Unchecked: only the thread uses ``multi``, except for `curl_multi_wakeup`, which any thread may call; everything
/// else is behind the lock of ``state``.
final class HTTPLoop: @unchecked Sendable {
    struct Job: Sendable {
        let id: UInt64
        let request: HTTPRequest
        let continuation: CheckedContinuation<Result<HTTPAnswer, ExchangeFailure>, Never>
    }

    private struct State {
        var lastID: UInt64 = 0
        var waiting: [Job] = []
        /// Added, and not answered.
        var pending: Set<UInt64> = []
        /// Those of them that the thread has to end.
        var cancelled: Set<UInt64> = []
        var hasThread = false
        var isClosed = false
    }

    private struct Work {
        var starts: [Job] = []
        var cancelled: Set<UInt64> = []
        var isClosed = false
    }

    private typealias Running = (exchange: HTTPExchange, job: Job)

    private let settings: HTTPClient.Settings
    private let capacity: Int
    private let state = Mutex(State())
    private let multi: UnsafeMutableRawPointer?

    /// Once for the process; libcurl counts and locks such calls itself.
    private static let isReady = curl_global_init(Int(CURL_GLOBAL_SSL)) == CURLE_OK

    init(_ settings: HTTPClient.Settings) {
        self.settings = settings
        capacity = min(max(1, settings.connections), 1_024)
        multi = Self.isReady ? curl_multi_init() : nil
        if let multi { _ = ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, capacity) }
    }

    deinit { if let multi { curl_multi_cleanup(multi) } }

    // MARK: - Any thread

    func newID() -> UInt64 {
        state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
    }

    func add(_ job: Job) {
        enum Step { case wake, start, refuse(ExchangeFailure) }
        let step = state.withLock { state -> Step in
            // A task that is cancelled later finds the job among the pending ones.
            guard !Task.isCancelled, !state.isClosed else { return .refuse(.cancelled) }
            guard multi != nil else {
                return .refuse(ExchangeFailure(kind: .unusable, message: "libcurl can't be started"))
            }
            state.waiting.append(job)
            state.pending.insert(job.id)
            defer { state.hasThread = true }
            return state.hasThread ? .wake : .start
        }
        switch step {
        case .wake: wake()
        case .start: start()
        case .refuse(let reason): job.continuation.resume(returning: .failure(reason))
        }
    }

    func cancel(_ id: UInt64) {
        state.withLock { state in
            if state.pending.contains(id) { state.cancelled.insert(id) }
        }
        wake()
    }

    func close() {
        state.withLock { $0.isClosed = true }
        wake()
    }

    private func wake() { if let multi { curl_multi_wakeup(multi) } }

    private func start() {
        let code = DetachedThread.start { self.run() }
        guard code != 0 else { return }
        // The next request tries to start a thread again; the requests that wait now fail.
        let stranded = state.withLock { state in
            state.hasThread = false
            (state.pending, state.cancelled) = ([], [])
            defer { state.waiting = [] }
            return state.waiting
        }
        for job in stranded {
            job.continuation.resume(
                returning: .failure(ExchangeFailure(kind: .transient, message: "no thread can be made (error \(code))"))
            )
        }
    }

    // MARK: - The thread

    private func run() {
        guard let multi else { return }
        var running: [UInt64: Running] = [:]
        while true {
            let work = takeWork(free: capacity - running.count)
            if work.isClosed { break }
            for id in work.cancelled {
                if let found = running.removeValue(forKey: id) { end(found, .failure(.cancelled), multi) }
            }
            for job in work.starts { begin(job, &running, multi) }
            var count: CInt = 0
            let code = curl_multi_perform(multi, &count)
            let hasEnded = finish(&running, multi)
            guard code == CURLM_OK else {
                fail(&running, "libcurl can't go on (\(String(cString: curl_multi_strerror(code))))", multi)
                continue
            }
            // After an exchange has ended, a waiting job may start at once.
            if !hasEnded { curl_multi_poll(multi, nil, 0, 60_000, nil) }
        }
        for found in running.values { end(found, .failure(.cancelled), multi) }
    }

    private func takeWork(free: Int) -> Work {
        let (work, refused) = state.withLock { state -> (Work, [Job]) in
            let cancelled = state.cancelled
            state.cancelled = []
            let isOut: (Job) -> Bool = { [isClosed = state.isClosed] in isClosed || cancelled.contains($0.id) }
            var refused: [Job] = []
            if !cancelled.isEmpty || state.isClosed {
                refused = state.waiting.filter(isOut)
                state.waiting.removeAll(where: isOut)
                state.pending.subtract(refused.map(\.id))
            }
            let starts = Array(state.waiting.prefix(free))
            state.waiting.removeFirst(starts.count)
            return (Work(starts: starts, cancelled: cancelled, isClosed: state.isClosed), refused)
        }
        for job in refused { job.continuation.resume(returning: .failure(.cancelled)) }
        return work
    }

    private func begin(_ job: Job, _ running: inout [UInt64: Running], _ multi: UnsafeMutableRawPointer) {
        do throws(ExchangeFailure) {
            let exchange = try HTTPExchange(job.id, job.request, settings: settings)
            guard curl_multi_add_handle(multi, exchange.easy) == CURLM_OK else {
                throw ExchangeFailure(kind: .transient, message: "libcurl can't begin")
            }
            running[job.id] = (exchange, job)
        } catch {
            answer(job, .failure(error))
        }
    }

    /// - Returns: whether an exchange has ended.
    private func finish(_ running: inout [UInt64: Running], _ multi: UnsafeMutableRawPointer) -> Bool {
        var left: CInt = 0
        var ended: [(HTTPExchange, CURLcode)] = []
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                let exchange = HTTPExchange.of(
                    UnsafeMutableRawPointer(mutating: ccurl_get_text(easy, CURLINFO_PRIVATE)))
            else { continue }
            ended.append((exchange, ccurl_message_result(message)))
        }
        for (exchange, code) in ended {
            if let found = running.removeValue(forKey: exchange.id) { end(found, exchange.end(code), multi) }
        }
        return !ended.isEmpty
    }

    private func fail(_ running: inout [UInt64: Running], _ message: String, _ multi: UnsafeMutableRawPointer) {
        for found in running.values {
            end(found, .failure(ExchangeFailure(kind: .transient, message: message)), multi)
        }
        running = [:]
        // Keeps the thread from spinning if the next call fails as well.
        usleep(10_000)
    }

    private func end(
        _ found: Running, _ result: Result<HTTPAnswer, ExchangeFailure>, _ multi: UnsafeMutableRawPointer,
    ) {
        curl_multi_remove_handle(multi, found.exchange.easy)
        answer(found.job, result)
    }

    private func answer(_ job: Job, _ result: Result<HTTPAnswer, ExchangeFailure>) {
        state.withLock { state in
            state.pending.remove(job.id)
            state.cancelled.remove(job.id)
        }
        job.continuation.resume(returning: result)
    }
}
