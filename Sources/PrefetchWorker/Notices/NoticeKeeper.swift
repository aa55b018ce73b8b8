internal import Core
public import Download
public import Jobs
public import Logging
internal import Synchronization

/// Sends notices (webhooks, or a command's input) of jobs that have ended to the receivers that these jobs name.
///
/// A notice that a receiver does not take is sent again, by any worker of the database, up to
/// ``JobNotice/maxAttempts`` times. Requests are made by the download engine under the worker's own address guard; they
/// follow no redirect, and have none of the worker's headers.
public final class NoticeKeeper: Sendable {
    /// Notices that are sent at once.
    private static let width = 8
    /// How often notices are looked for: a look costs one query.
    private static let interval: Duration = .seconds(2)

    private let store: JobStore
    private let secret: NoticeSecret?
    private let command: NoticeCommand?
    private let configuration: DownloadConfiguration
    private let logger: Logger
    private let downloader = Mutex<Downloader?>(nil)

    /// - Parameter downloads: the worker's; its addresses, proxy, certificates and user agent hold for notices, too.
    /// - Throws: `usage` if the command that the options name is no program.
    public init(
        _ options: NoticeOptions, downloads: DownloadConfiguration, _ store: JobStore, logger: Logger,
    ) throws(WorkerError) {
        self.store = store
        self.logger = logger
        secret = options.secret
        command = try options.command.map { (path) throws(WorkerError) in
            try NoticeCommand(path, limit: options.commandTime)
        }
        var configuration = DownloadConfiguration()
        configuration.addresses = downloads.addresses
        configuration.caFile = downloads.caFile
        configuration.proxy = downloads.proxy
        configuration.userAgent = downloads.userAgent
        configuration.concurrency = Self.width
        configuration.maxBodyBytes = 1 << 20
        configuration.maxRedirects = 0
        configuration.totalTimeout = .seconds(30)
        self.configuration = configuration
    }

    /// Sends what is due until the task is cancelled.
    public func run() async {
        while !Task.isCancelled {
            await sendAllDue()
            // Cancellation ends the sleep.
            try? await Task.sleep(for: Self.interval)
        }
        await close()
    }

    /// Sends what is due at this moment, once each.
    public func sendAllDue() async {
        await withTaskGroup(of: Void.self) { group in
            var running = 0
            while !Task.isCancelled, let notice = await next() {
                if running == Self.width { await group.next() } else { running += 1 }
                group.addTask { await self.send(notice) }
            }
        }
    }

    public func close() async { await downloader.withLock { $0.take() }?.shutdown() }

    private func next() async -> JobNotice? {
        do {
            return try await store.notices.take(takesCommands: command != nil)
        } catch {
            // If the database stays unusable, the claim loop ends the worker.
            logger.debug("The notices of ended jobs can't be read: \(error.message)")
            return nil
        }
    }

    // MARK: - One notice

    /// Why an attempt failed.
    private struct Fault {
        let message: String
        var isFinal = false
        var retryAfter: Int64 = 0
    }

    private func send(_ notice: JobNotice) async {
        do {
            guard let progress = try await store.reports.progress(job: notice.job) else { return }
            let message = try NoticeMessage(notice, progress, try await FailureCounts(of: [notice.job], in: store))
            let fault: Fault? =
                switch notice.target {
                case .command: await command?.run(message).map { Fault(message: $0) }
                case .url(let url): await post(message, to: url)
                }
            if fault != nil, Task.isCancelled { return try await store.notices.release(notice) }
            guard let fault else { return try await store.notices.sent(notice) }
            let isOver = try await !store.notices.failed(
                notice, fault.message, isFinal: fault.isFinal, retryAfter: fault.retryAfter)
            logger.warning(
                "The receiver did not accept the notice of an ended job: \(fault.message)",
                metadata: [
                    "job": "\(notice.job)",
                    "next": isOver ? "none" : "in \(max(notice.delay, fault.retryAfter) / 1_000) s",
                ])
        } catch {
            // The notice stays in the database; the next worker that finds it due sends it again.
            logger.warning("A job's notice can't be sent yet: \(error)", metadata: ["job": "\(notice.job)"])
        }
    }

    private func post(_ message: NoticeMessage, to url: String) async -> Fault? {
        var request = DownloadRequest(
            url: url, headers: message.headers(at: store.database.currentTime.milliseconds / 1_000, signedWith: secret))
        request.body = message.body
        do {
            switch try await poster().download(request) {
            case .body, .notModified: return nil
            case .shed(let host): return Fault(message: "\(host) is busy.")
            case .failed(let failure):
                let status = failure.response?.status
                // 204 and 205 have no body.
                if let status, (200..<300).contains(status), failure.httpStatus == status { return nil }
                // 410 says that the receiver wants no more; a wrong URL stays wrong.
                let isFinal = status == 410 || failure.failureClass == .invalidURL
                return Fault(
                    message: OwnLimits().explained(failure).message, isFinal: isFinal,
                    retryAfter: failure.retryAfter?.milliseconds ?? 0)
            }
        } catch {
            return Fault(message: "\(error)")
        }
    }

    private func poster() throws -> Downloader {
        try downloader.withLock { downloader in
            if let downloader { return downloader }
            let made = try Downloader(
                configuration: configuration, makeFile: { try NoticeFile.make() }, inspect: { _ in .accept })
            downloader = made
            return made
        }
    }
}
