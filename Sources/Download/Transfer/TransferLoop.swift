import CCurl
import Core
import Glibc
import Synchronization

/// The curl thread: starts, drives and ends transfers until the scheduler closes.
///
/// Owns the multi handle and the handles in it. Only the curl thread uses it, except for ``bell``.
final class TransferLoop {
    private let multi: UnsafeMutableRawPointer
    private let configuration: DownloadConfiguration
    private let tools: Transfer.Tools
    private var scheduler: DownloadScheduler?
    private var running: [UInt64: Transfer] = [:]
    private var idle: [EasyHandle] = []
    private var jars = CookieJars()
    private var partials: PartialStore
    /// Whether a slot became free since the last call for work, so that a request may start before the thread sleeps.
    private var hasFreedSlot = false
    private var lastReport = ContinuousClock.now
    private var hasReported = false
    /// When the loop last looked for stalled transfers.
    private var lastLook = ContinuousClock.now
    /// Whether a running transfer may be the first of a host that has not answered; then the loop looks more often.
    private var hasUnansweredHosts = false
    /// No transfer's deadline is before this.
    private var nextDeadline: ContinuousClock.Instant?
    private var answers = CompletionBatch()

    /// - Throws: `Failure.internalFault` if libcurl has no memory.
    init(_ configuration: DownloadConfiguration, tools: Transfer.Tools) throws(Failure) {
        guard let multi = curl_multi_init() else {
            throw Failure.internalFault("libcurl cannot be started.")
        }
        self.multi = multi
        self.configuration = configuration
        self.tools = tools
        partials = PartialStore(bytes: configuration.maxPartialBytes)
        // Twice as many idle connections as slots: batches go back and forth between a few hosts.
        let connections = max(16, 2 * configuration.concurrency)
        ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, connections)
    }

    deinit {
        // The multi handle must be freed after the last easy handle.
        idle.removeAll()
        curl_multi_cleanup(multi)
    }

    var bell: Bell { Bell(multi: multi) }

    func run(_ scheduler: DownloadScheduler) {
        self.scheduler = scheduler
        while step(scheduler) {}
        for transfer in Array(running.values) { end(transfer, with: .failed(.stopped()), scheduler) }
        answers.give()
        // The bell is dropped before the handles are freed, which may block. The callers of closeAndWait() are resumed
        // only after that.
        scheduler.silence()
    }
}

extension TransferLoop {
    /// One turn; returns false when the scheduler is closing.
    private func step(_ scheduler: DownloadScheduler) -> Bool {
        hasFreedSlot = false
        partials.forgetOld(now: .now)
        let work = scheduler.takeWork(now: .now)
        guard !work.isClosing else { return false }
        for id in work.cancelled {
            if let transfer = running[id] { end(transfer, with: .failed(.stopped()), scheduler) }
        }
        for id in work.withRoom {
            if let transfer = running[id] { goOn(transfer, scheduler) }
        }
        for queued in work.starts { start(queued, scheduler) }
        var count: CInt = 0
        check(curl_multi_perform(multi, &count), scheduler)
        finishTransfers(scheduler)
        expireTransfers(scheduler)
        answers.giveIfDue(isLast: running.isEmpty)
        if work.isCrowded { findStalled(scheduler) }
        let nextEnd = endStalled(since: work.drainingSince, scheduler)
        report(scheduler)
        if hasFreedSlot { return true }
        let nextLook = work.isCrowded && !running.isEmpty ? lastLook + lookEvery : nil
        let nextReport = running.isEmpty && !hasReported ? nil : lastReport + reportEvery
        // While requests wait, the thread looks often enough to tell a suspension from a wait; see ``ShareLease``.
        let nextSign = work.isCrowded ? ContinuousClock.now + ShareLease.gap / 2 : nil
        let pause = pause(until: [work.nextRelease, nextLook, nextReport, nextEnd, answers.due, nextSign])
        check(curl_multi_poll(multi, nil, 0, pause, nil), scheduler)
        return true
    }

    /// Delivers a paused transfer's bytes again; it may pause again. If the bytes are refused, curl_easy_pause returns
    /// the error, but the transfer would continue.
    private func goOn(_ transfer: Transfer, _ scheduler: DownloadScheduler) {
        let code = curl_easy_pause(transfer.easy.pointer, ccurl_go_on())
        if code == CURLE_WRITE_ERROR || code == CURLE_OUT_OF_MEMORY { finish(transfer, code, scheduler) }
    }

    private func start(_ queued: QueuedTransfer, _ scheduler: DownloadScheduler) {
        do throws(EasyHandle.OptionError) {
            let easy = if let pooled = idle.popLast() { pooled } else { try EasyHandle() }
            let transfer = Transfer(
                queued, easy: easy, configuration: configuration, tools: tools, jar: try jar(of: queued),
                // A request for only the beginning of a body cannot use earlier bytes, which may be more than it needs.
                resume: queued.request.hasValidators || queued.request.takesBeginning
                    ? nil : partials.take(PartialKey(queued)),
                now: .now)
            transfer.onSpace = { [id = queued.id] in scheduler.resumePaused(id) }
            transfer.allowsSending = { scheduler.allowsSending(now: .now) }
            running[queued.id] = transfer
            hasUnansweredHosts = true
            begin(transfer, scheduler)
        } catch {
            hasFreedSlot = true
            scheduler.finished(queued.id, .nothing, withBody: false)
            queued.answer(.failed(Self.unusable(error)))
        }
    }

    private func jar(of queued: QueuedTransfer) throws(EasyHandle.OptionError) -> CookieJar? {
        guard let name = queued.request.cookieJar else { return nil }
        return try jars.jar(name)
    }

    /// Sends the request of a transfer's current hop.
    private func begin(_ transfer: Transfer, _ scheduler: DownloadScheduler) {
        do throws(EasyHandle.OptionError) {
            try transfer.easy.prepare(transfer)
            let code = curl_multi_add_handle(multi, transfer.easy.pointer)
            guard code == CURLM_OK else { throw EasyHandle.OptionError(code: CURLE_FAILED_INIT) }
            nextDeadline = min(nextDeadline ?? transfer.deadline, transfer.deadline)
        } catch {
            end(transfer, with: .failed(Self.unusable(error)), scheduler)
        }
    }

    private static func unusable(_ error: EasyHandle.OptionError) -> Failure {
        let reason = String(cString: curl_easy_strerror(error.code))
        let option = error.option.map { " (option \($0.rawValue))" } ?? ""
        return Failure.internalFault("libcurl did not accept the request: \(reason)\(option).")
    }

    private func finishTransfers(_ scheduler: DownloadScheduler) {
        var left: CInt = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE,
                let context = ccurl_get_text(message.pointee.easy_handle, CURLINFO_PRIVATE)
            else { continue }
            let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
            // Read before the handle is removed, which frees the message.
            let code = ccurl_message_result(message)
            finish(transfer, code, scheduler)
        }
    }

    private func finish(_ transfer: Transfer, _ code: CURLcode, _ scheduler: DownloadScheduler) {
        if transfer.needsOtherConnection {
            curl_multi_remove_handle(multi, transfer.easy.pointer)
            transfer.reconnect()
            return begin(transfer, scheduler)
        }
        scheduler.received(transfer.bodyBytes, saved: transfer.savedBytes)
        switch transfer.end(code, onConsumed: { scheduler.consumed() }) {
        case .outcome(let outcome):
            end(transfer, with: outcome, scheduler)
        case .redirect(let url) where transfer.queued.follows(url):
            curl_multi_remove_handle(multi, transfer.easy.pointer)
            transfer.follow(url)
            begin(transfer, scheduler)
        case .redirect(let url):
            release(transfer, .answered, withBody: false, scheduler)
            transfer.queued.onRedirect(Hop(url: url, redirects: transfer.redirects + 1, spent: transfer.elapsed))
        }
    }

    private func end(_ transfer: Transfer, with outcome: DownloadOutcome<BodyFile>, _ scheduler: DownloadScheduler) {
        if case .failed(let failure) = outcome, let partial = transfer.partial(failure) {
            partials.keep(partial, PartialKey(transfer.queued))
        }
        if case .failed = outcome { transfer.tellFailure() }
        var (outcome, pause) = (outcome, Duration?.none)
        if case .failed(var failure) = outcome {
            failure.host = transfer.queued.host
            outcome = .failed(failure)
            // `Retry-After` with a final status concerns this URL, not the host.
            if failure.failureClass.treatment == .retry { pause = failure.retryAfter }
        }
        let withBody = if case .body = outcome { true } else { false }
        release(
            transfer, HostSignal(outcome, isRepeated: transfer.queued.request.isRepeated), withBody: withBody,
            pause: pause, scheduler)
        answers.add(outcome, to: transfer.queued)
    }

    private func release(
        _ transfer: Transfer, _ signal: HostSignal, withBody: Bool, pause: Duration? = nil,
        _ scheduler: DownloadScheduler,
    ) {
        let hasAnswered = transfer.easy.long(CURLINFO_RESPONSE_CODE) > 0
        transfer.letGoOfConnection()
        curl_multi_remove_handle(multi, transfer.easy.pointer)
        running[transfer.queued.id] = nil
        // Cookies stay with a handle, and a handle whose connection failed keeps its buffer; neither is reused.
        if transfer.jar == nil, hasAnswered { idle.append(transfer.easy) }
        hasFreedSlot = true
        scheduler.finished(transfer.queued.id, signal, withBody: withBody, pause: pause)
    }
}

// Time and errors.
extension TransferLoop {
    private func expireTransfers(_ scheduler: DownloadScheduler) {
        let now = ContinuousClock.now
        // Computed each time: a new connection moves a deadline forward, without a callback.
        nextDeadline = running.values.lazy.map(\.deadline).min()
        guard let nextDeadline, nextDeadline <= now else { return }
        for transfer in Array(running.values) where transfer.deadline <= now {
            transfer.expire(now: now)
            finish(transfer, CURLE_OPERATION_TIMEDOUT, scheduler)
        }
        self.nextDeadline = running.values.map(\.deadline).min()
    }

    /// While the downloader settles, ends transfers that have received nothing for a while.
    ///
    /// - Returns: when the next of them is due.
    private func endStalled(
        since start: ContinuousClock.Instant?, _ scheduler: DownloadScheduler,
    ) -> ContinuousClock.Instant? {
        guard let start else { return nil }
        let patience = configuration.drainPatience
        let now = ContinuousClock.now
        var next: ContinuousClock.Instant?
        for transfer in Array(running.values) {
            let end = max(start, now - transfer.idleTime(now).time) + patience
            if end <= now {
                self.end(transfer, with: .failed(.stopped()), scheduler)
            } else {
                next = min(next ?? end, end)
            }
        }
        return next
    }

    /// At least this often, so that a transfer shows soon after it has begun.
    private var reportEvery: Duration { min(configuration.progressInterval, .milliseconds(400)) }

    /// Updates the progress of running transfers.
    private func report(_ scheduler: DownloadScheduler) {
        let now = ContinuousClock.now
        guard now - lastReport >= reportEvery else { return }
        lastReport = now
        let progress = running.values.compactMap(\.progress)
        guard hasReported || !progress.isEmpty else { return }
        hasReported = !progress.isEmpty
        scheduler.state.withLock { $0.progress = progress }
    }

    /// Looks for transfers that hold a slot and receive nothing.
    private func findStalled(_ scheduler: DownloadScheduler) {
        let now = ContinuousClock.now
        guard now - lastLook >= lookEvery else { return }
        lastLook = now
        hasUnansweredHosts = scheduler.markStalled(
            running.mapValues { $0.idleTime(now) }, patience: configuration.patience)
    }

    private var lookEvery: Duration {
        configuration.patience / (hasUnansweredHosts ? 2 * DownloadScheduler.newHostPatienceDivisor : 2)
    }

    /// Milliseconds until the next event, rounded up so that the thread does not wake just before it.
    private func pause(until others: [ContinuousClock.Instant?]) -> CInt {
        let due = ([nextDeadline] + others).compactMap { $0 }.min()
        guard let due else { return 60_000 }
        return CInt(clamping: min(max((due - .now).milliseconds + 1, 0), 60_000))
    }

    /// The multi handle itself failed (memory, a bad descriptor): no running transfer can continue reliably.
    private func check(_ code: CURLMcode, _ scheduler: DownloadScheduler) {
        guard code != CURLM_OK else { return }
        let reason = String(cString: curl_multi_strerror(code))
        let failure = Failure.internalFault("libcurl cannot go on: \(reason).")
        for transfer in Array(running.values) { end(transfer, with: .failed(failure), scheduler) }
        // Keeps the thread from spinning if the call fails again immediately.
        usleep(10_000)
    }
}
