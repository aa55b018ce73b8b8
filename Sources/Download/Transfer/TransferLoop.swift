import CCurl
import Glibc

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
    /// A slot became free since work was last taken: there may be something to start before sleeping.
    private var hasFreedSlot = false
    /// No transfer's deadline is before this.
    private var nextDeadline: ContinuousClock.Instant?

    /// - Throws: `internalError` when libcurl has no memory or lacks an option.
    init(_ configuration: DownloadConfiguration, tools: Transfer.Tools) throws(DownloadFailure) {
        guard let multi = curl_multi_init() else {
            throw DownloadFailure(.internalError, "libcurl cannot be started.")
        }
        self.multi = multi
        self.configuration = configuration
        self.tools = tools
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
        // Everything that may block or fail is behind us before anybody is told that it is over.
        exchange.silence()
    }
}

extension TransferLoop {
    /// One turn; false when the exchange is closing.
    private func step(_ exchange: Exchange) -> Bool {
        hasFreedSlot = false
        let work = exchange.takeWork(now: .now)
        guard !work.isClosing else { return false }
        for id in work.cancelled {
            if let transfer = running[id] { end(transfer, with: .failed(.cancelled), exchange) }
        }
        for ticket in work.starts { start(ticket, exchange) }
        var count: CInt = 0
        check(curl_multi_perform(multi, &count), exchange)
        finishTransfers(exchange)
        expireTransfers(exchange)
        if hasFreedSlot { return true }
        check(curl_multi_poll(multi, nil, 0, pause(until: work.nextRelease), nil), exchange)
        return true
    }

    private func start(_ ticket: Ticket, _ exchange: Exchange) {
        do throws(EasyHandle.OptionError) {
            let easy = if let pooled = idle.popLast() { pooled } else { try EasyHandle() }
            let transfer = Transfer(ticket, easy: easy, configuration: configuration, tools: tools, now: .now)
            running[ticket.id] = transfer
            begin(transfer, exchange)
        } catch {
            hasFreedSlot = true
            exchange.finished(ticket.id, withBody: false)
            ticket.answer(.failed(Self.unusable(error.code)))
        }
    }

    /// Sends the request of a transfer's current hop.
    private func begin(_ transfer: Transfer, _ exchange: Exchange) {
        do throws(EasyHandle.OptionError) {
            try transfer.easy.prepare(transfer)
            let code = curl_multi_add_handle(multi, transfer.easy.pointer)
            guard code == CURLM_OK else { throw EasyHandle.OptionError(code: CURLE_FAILED_INIT) }
            nextDeadline = min(nextDeadline ?? transfer.deadline, transfer.deadline)
        } catch {
            end(transfer, with: .failed(Self.unusable(error.code)), exchange)
        }
    }

    private static func unusable(_ code: CURLcode) -> DownloadFailure {
        let reason = String(cString: curl_easy_strerror(code))
        return DownloadFailure(.internalError, "libcurl did not accept the request: \(reason).")
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
        exchange.received(transfer.easy.offset(CURLINFO_SIZE_DOWNLOAD_T))
        switch transfer.end(code, onConsumed: { exchange.consumed() }) {
        case .outcome(let outcome):
            end(transfer, with: outcome, exchange)
        case .redirect(let url):
            curl_multi_remove_handle(multi, transfer.easy.pointer)
            transfer.follow(url)
            begin(transfer, exchange)
        }
    }

    private func end(_ transfer: Transfer, with outcome: DownloadOutcome, _ exchange: Exchange) {
        curl_multi_remove_handle(multi, transfer.easy.pointer)
        running[transfer.ticket.id] = nil
        idle.append(transfer.easy)
        hasFreedSlot = true
        let withBody = if case .body = outcome { true } else { false }
        exchange.finished(transfer.ticket.id, withBody: withBody)
        transfer.ticket.answer(outcome)
    }
}

// Time and errors.
extension TransferLoop {
    private func expireTransfers(_ exchange: Exchange) {
        let now = ContinuousClock.now
        guard let nextDeadline, nextDeadline <= now else { return }
        for transfer in Array(running.values) where transfer.deadline <= now {
            transfer.expire(now: now)
            finish(transfer, CURLE_OPERATION_TIMEDOUT, exchange)
        }
        self.nextDeadline = running.values.map(\.deadline).min()
    }

    /// Milliseconds until something is due, rounded up so that the thread doesn't wake just before it.
    private func pause(until release: ContinuousClock.Instant?) -> CInt {
        let due = [nextDeadline, release].compactMap { $0 }.min()
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
