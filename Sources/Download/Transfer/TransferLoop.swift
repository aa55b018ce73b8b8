import CCurl
import Glibc
import Synchronization

/// The curl thread: starts, drives and ends transfers until the exchange closes.
///
/// Owns the multi handle and everything added to it. Used by that thread alone, but for ``bell``.
final class TransferLoop {
    private let multi: UnsafeMutableRawPointer
    private let configuration: DownloadConfiguration
    private let tools: Transfer.Tools
    private var exchange: Exchange?
    private var running: [UInt64: Transfer] = [:]
    private var idle: [EasyHandle] = []
    private var jars = CookieJars()
    private let connections = KnownConnections()
    private var partials: PartialStore
    /// A slot became free since work was last taken: there may be something to start before sleeping.
    private var hasFreedSlot = false
    private var lastReport = ContinuousClock.now
    private var hasReported = false
    /// When silent transfers were last looked for.
    private var lastLook = ContinuousClock.now
    /// Whether one of them may be the first of its host: then they are looked for more often.
    private var hasStrangers = false
    /// No transfer's deadline is before this.
    private var nextDeadline: ContinuousClock.Instant?
    private var answers = Answers()

    /// - Throws: `internalError` when libcurl has no memory or lacks an option.
    init(_ configuration: DownloadConfiguration, tools: Transfer.Tools) throws(DownloadFailure) {
        guard let multi = curl_multi_init() else {
            throw DownloadFailure(.internalError, "libcurl cannot be started.")
        }
        self.multi = multi
        self.configuration = configuration
        self.tools = tools
        partials = PartialStore(bytes: configuration.maxPartialBytes)
        // Idle connections are kept for every slot twice over: batches go back and forth between a few hosts.
        let connections = max(16, 2 * configuration.concurrency)
        ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, connections)
    }

    deinit {
        // Only after the last easy handle is gone may the multi handle go.
        idle.removeAll()
        curl_multi_cleanup(multi)
    }

    var bell: Bell { Bell(multi: multi) }

    func run(_ exchange: Exchange) {
        self.exchange = exchange
        while step(exchange) {}
        for transfer in Array(running.values) { end(transfer, with: .failed(.cancelled), exchange) }
        answers.give()
        // Everything that may block or fail is behind us before anybody is told that it is over.
        exchange.silence()
    }
}

extension TransferLoop {
    /// One turn; false when the exchange is closing.
    private func step(_ exchange: Exchange) -> Bool {
        hasFreedSlot = false
        partials.forgetOld(now: .now)
        let work = exchange.takeWork(now: .now)
        guard !work.isClosing else { return false }
        for id in work.cancelled {
            if let transfer = running[id] { end(transfer, with: .failed(.cancelled), exchange) }
        }
        for id in work.withRoom {
            if let transfer = running[id] { goOn(transfer, exchange) }
        }
        for ticket in work.starts { start(ticket, exchange) }
        var count: CInt = 0
        check(curl_multi_perform(multi, &count), exchange)
        finishTransfers(exchange)
        expireTransfers(exchange)
        answers.giveIfDue(isLast: running.isEmpty)
        if work.isCrowded { listen(exchange) }
        let nextEnd = endSilent(since: work.settlingSince, exchange)
        report(exchange)
        if hasFreedSlot { return true }
        let nextLook = work.isCrowded && !running.isEmpty ? lastLook + lookEvery : nil
        let nextReport = running.isEmpty && !hasReported ? nil : lastReport + Self.reporting
        let pause = pause(until: [work.nextRelease, nextLook, nextReport, nextEnd, answers.due])
        check(curl_multi_poll(multi, nil, 0, pause, nil), exchange)
        return true
    }

    /// Gives a transfer that has paused its bytes again. It may pause again; and where they are refused, libcurl says so to
    /// nobody but the caller, and would go on.
    private func goOn(_ transfer: Transfer, _ exchange: Exchange) {
        let code = curl_easy_pause(transfer.easy.pointer, ccurl_go_on())
        if code == CURLE_WRITE_ERROR || code == CURLE_OUT_OF_MEMORY { finish(transfer, code, exchange) }
    }

    private func start(_ ticket: Ticket, _ exchange: Exchange) {
        do throws(EasyHandle.OptionError) {
            let easy = if let pooled = idle.popLast() { pooled } else { try EasyHandle() }
            let transfer = Transfer(
                ticket, easy: easy, configuration: configuration, tools: tools, jar: try jar(of: ticket),
                // One that wants the beginning only needs none that came before, which may be more than it wants.
                resume: ticket.request.hasValidators || ticket.request.takesBeginning
                    ? nil : partials.take(PartialKey(ticket)),
                connections: connections, now: .now)
            transfer.onRoom = { [id = ticket.id] in exchange.hasRoom(id) }
            running[ticket.id] = transfer
            hasStrangers = true
            begin(transfer, exchange)
        } catch {
            hasFreedSlot = true
            exchange.finished(ticket.id, .nothing, withBody: false)
            ticket.answer(.failed(Self.unusable(error)))
        }
    }

    private func jar(of ticket: Ticket) throws(EasyHandle.OptionError) -> CookieJar? {
        guard let name = ticket.request.cookieJar else { return nil }
        return try jars.jar(name)
    }

    /// Sends the request of a transfer's current hop.
    private func begin(_ transfer: Transfer, _ exchange: Exchange) {
        do throws(EasyHandle.OptionError) {
            try transfer.easy.prepare(transfer)
            let code = curl_multi_add_handle(multi, transfer.easy.pointer)
            guard code == CURLM_OK else { throw EasyHandle.OptionError(code: CURLE_FAILED_INIT) }
            nextDeadline = min(nextDeadline ?? transfer.deadline, transfer.deadline)
        } catch {
            end(transfer, with: .failed(Self.unusable(error)), exchange)
        }
    }

    private static func unusable(_ error: EasyHandle.OptionError) -> DownloadFailure {
        let reason = String(cString: curl_easy_strerror(error.code))
        let option = error.option.map { " (option \($0.rawValue))" } ?? ""
        return DownloadFailure(.internalError, "libcurl did not accept the request: \(reason)\(option).")
    }

    private func finishTransfers(_ exchange: Exchange) {
        var left: CInt = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE,
                let context = ccurl_get_text(message.pointee.easy_handle, CURLINFO_PRIVATE)
            else { continue }
            let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
            // Read before the handle is removed, which frees the message.
            let code = ccurl_message_result(message)
            finish(transfer, code, exchange)
        }
    }

    private func finish(_ transfer: Transfer, _ code: CURLcode, _ exchange: Exchange) {
        if transfer.needsOtherConnection {
            curl_multi_remove_handle(multi, transfer.easy.pointer)
            transfer.reconnect()
            return begin(transfer, exchange)
        }
        exchange.received(transfer.easy.offset(CURLINFO_SIZE_DOWNLOAD_T), saved: transfer.savedBytes)
        switch transfer.end(code, onConsumed: { exchange.consumed() }) {
        case .outcome(let outcome):
            end(transfer, with: outcome, exchange)
        case .redirect(let url) where transfer.ticket.follows(url):
            curl_multi_remove_handle(multi, transfer.easy.pointer)
            transfer.follow(url)
            begin(transfer, exchange)
        case .redirect(let url):
            release(transfer, .answered, withBody: false, exchange)
            transfer.ticket.onRedirect(Hop(url: url, redirects: transfer.redirects + 1, spent: transfer.elapsed))
        }
    }

    private func end(_ transfer: Transfer, with outcome: DownloadOutcome, _ exchange: Exchange) {
        if case .failed(let failure) = outcome, let partial = transfer.partial(failure) {
            partials.keep(partial, PartialKey(transfer.ticket))
        }
        var (outcome, pause) = (outcome, Duration?.none)
        if case .failed(var failure) = outcome {
            failure.host = transfer.ticket.host
            outcome = .failed(failure)
            // What an answer for good says of another time says nothing of the host's other URLs.
            if failure.code.isPassing { pause = failure.retryAfter }
        }
        let withBody = if case .body = outcome { true } else { false }
        release(
            transfer, HostLesson(outcome, isRepeated: transfer.ticket.request.isRepeated), withBody: withBody,
            pause: pause, exchange)
        answers.add(outcome, to: transfer.ticket)
    }

    private func release(
        _ transfer: Transfer, _ lesson: HostLesson, withBody: Bool, pause: Duration? = nil, _ exchange: Exchange,
    ) {
        let hasAnswered = transfer.easy.long(CURLINFO_RESPONSE_CODE) > 0
        transfer.letGoOfConnection()
        curl_multi_remove_handle(multi, transfer.easy.pointer)
        running[transfer.ticket.id] = nil
        // Cookies stay with a handle; and one whose connection failed at once keeps its buffer.
        if transfer.jar == nil, hasAnswered { idle.append(transfer.easy) }
        hasFreedSlot = true
        exchange.finished(transfer.ticket.id, lesson, withBody: withBody, pause: pause)
    }
}

// Time and errors.
extension TransferLoop {
    private func expireTransfers(_ exchange: Exchange) {
        let now = ContinuousClock.now
        // Looked at each time: a deadline comes nearer when a connection is made, and nobody tells us.
        nextDeadline = running.values.lazy.map(\.deadline).min()
        guard let nextDeadline, nextDeadline <= now else { return }
        for transfer in Array(running.values) where transfer.deadline <= now {
            transfer.expire(now: now)
            finish(transfer, CURLE_OPERATION_TIMEDOUT, exchange)
        }
        self.nextDeadline = running.values.map(\.deadline).min()
    }

    /// Ends transfers that have got nothing for a while since no more are wanted: somebody waits for the last of them.
    ///
    /// - Returns: when the next of them is due.
    private func endSilent(
        since start: ContinuousClock.Instant?, _ exchange: Exchange,
    ) -> ContinuousClock.Instant? {
        guard let start else { return nil }
        let patience = configuration.settlingPatience
        let now = ContinuousClock.now
        var next: ContinuousClock.Instant?
        for transfer in Array(running.values) {
            let end = max(start, now - transfer.quiet(now).time) + patience
            if end <= now {
                self.end(transfer, with: .failed(.cancelled), exchange)
            } else {
                next = min(next ?? end, end)
            }
        }
        return next
    }

    private static let reporting = Duration.seconds(1)

    /// Says how far the long transfers have come, once a second.
    private func report(_ exchange: Exchange) {
        let now = ContinuousClock.now
        guard now - lastReport >= Self.reporting else { return }
        lastReport = now
        let progress = running.values.compactMap { $0.progress(now) }
        guard hasReported || !progress.isEmpty else { return }
        hasReported = !progress.isEmpty
        exchange.state.withLock { $0.progress = progress }
    }

    /// Looks for transfers that hold a place and get nothing.
    private func listen(_ exchange: Exchange) {
        let now = ContinuousClock.now
        guard now - lastLook >= lookEvery else { return }
        lastLook = now
        hasStrangers = exchange.hear(running.mapValues { $0.quiet(now) }, patience: configuration.patience)
    }

    private var lookEvery: Duration {
        configuration.patience / (hasStrangers ? 2 * Exchange.patienceWithStrangers : 2)
    }

    /// Milliseconds until something is due, rounded up so that the thread doesn't wake just before it.
    private func pause(until others: [ContinuousClock.Instant?]) -> CInt {
        let due = ([nextDeadline] + others).compactMap { $0 }.min()
        guard let due else { return 60_000 }
        return CInt(clamping: min(max((due - .now).milliseconds + 1, 0), 60_000))
    }

    /// The multi handle itself failed (memory, a bad descriptor): nothing that runs can be trusted to go on.
    private func check(_ code: CURLMcode, _ exchange: Exchange) {
        guard code != CURLM_OK else { return }
        let reason = String(cString: curl_multi_strerror(code))
        let failure = DownloadFailure(.internalError, "libcurl cannot go on: \(reason).")
        for transfer in Array(running.values) { end(transfer, with: .failed(failure), exchange) }
        // Should it fail again at once, the thread must not spin.
        usleep(10_000)
    }
}
