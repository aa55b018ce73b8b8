import CCurl
public import SystemPackage

/// Fetches URLs over HTTP and HTTPS into files, most urgent first, within limits per host and in all.
///
/// One thread drives libcurl for all transfers; calls may come from anywhere. Nothing is tried again in here: a failure
/// carries its class, and the caller decides.
public final class Downloader: Sendable {
    private let configuration: DownloadConfiguration
    private let exchange: Exchange

    /// - Parameters:
    ///   - makeFile: makes the file for a body, when its first bytes are there. Called on the download thread; an
    ///     `Errno` it throws becomes ``DownloadFailure/Code/disk(_:)``.
    ///   - inspect: judges a body by its first bytes so far, at most 64 KiB, on the download thread, until it is
    ///     decided. A refusal cuts the transfer. What stays undecided is accepted.
    /// - Throws: `internalError` when libcurl or the thread cannot be started or `caFile` cannot be read.
    public init(
        configuration: DownloadConfiguration,
        makeFile: @escaping @Sendable () throws -> FileDescriptor,
        inspect: @escaping @Sendable (UnsafeRawBufferPointer) -> BodyVerdict,
    ) throws(DownloadFailure) {
        try CurlLibrary.start()
        try Self.checkReadable(configuration.caFile)
        self.configuration = configuration
        let loop = try TransferLoop(configuration, tools: Transfer.Tools(makeFile: makeFile, inspect: inspect))
        exchange = Exchange(configuration: configuration, bell: loop.bell)
        try TransferThread.start(loop, exchange: exchange)
    }

    deinit { exchange.close() }

    /// Fetches one URL. Never throws; cancelling the task cancels the transfer.
    public func download(_ request: DownloadRequest) async -> DownloadOutcome {
        let url: DownloadURL
        do throws(DownloadFailure) {
            url = try DownloadURL(request.url, maxBytes: configuration.maxURLBytes)
            try HeaderRules.check(request)
        } catch {
            return .failed(error)
        }
        let id = exchange.nextID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ticket = Ticket(id: id, request: request, url: url, continuation: continuation)
                exchange.submit(ticket, isCancelled: { Task.isCancelled })
            }
        } onCancel: {
            exchange.cancel(id)
        }
    }

    /// Moves the waiting downloads whose ``DownloadRequest/id`` is `id`; those that run or ended stay as they are.
    public func update(priority: Int, rank: Int64, for id: Int64) {
        exchange.update(priority: priority, rank: rank, for: id)
    }

    /// Nothing new starts on this host until then; what waits stays in the queue, what runs goes on. A shorter block
    /// does not undo a longer one.
    public func block(host: String, for duration: Duration) {
        exchange.block(Self.normal(host), until: .now + duration)
    }

    /// Until when a host is blocked; nil when it is not.
    public func blockedUntil(_ host: String) -> ContinuousClock.Instant? {
        exchange.blockedUntil(Self.normal(host))
    }

    /// The host name that budgets and blocks of this URL go by; nil for a URL that cannot be sent.
    public static func host(of url: String) -> String? {
        // Why it cannot be sent is what a download of it would say.
        try? DownloadURL(url, maxBytes: .max).host
    }

    /// `bytes` counts bodies as they were sent, since the start.
    public var counts: (running: Int, waiting: Int, unconsumed: Int, bytes: Int64) { exchange.counts }

    /// Takes effect on what starts next; nothing that runs is cut.
    public func setLimits(concurrency: Int, perHost: Int) {
        exchange.setLimits(concurrency: concurrency, perHost: perHost)
    }

    /// Ends what waits, and everything asked for from now on, as cancelled; what runs goes on to its end.
    public func cancelWaiting() { exchange.settle() }

    /// Ends everything waiting and running as cancelled, and returns when the thread has freed what it held. Downloads
    /// asked for from now on are cancelled at once.
    public func shutdown() async {
        await exchange.closeAndWait()
    }

    private static func normal(_ host: String) -> String {
        let lower = host.lowercased()
        return lower.hasSuffix(".") ? String(lower.dropLast()) : lower
    }

    private static func checkReadable(_ caFile: String?) throws(DownloadFailure) {
        guard let caFile else { return }
        do {
            try FileDescriptor.open(FilePath(caFile), .readOnly).close()
        } catch {
            throw DownloadFailure(.internalError, "The certificate file \(caFile) cannot be read: \(error).")
        }
    }
}

/// libcurl's global state, made once and kept until the process ends.
private enum CurlLibrary {
    private static let code = curl_global_init(Int(CURL_GLOBAL_SSL))

    static func start() throws(DownloadFailure) {
        guard code == CURLE_OK else {
            throw DownloadFailure(
                .internalError, "libcurl cannot be started: \(String(cString: curl_easy_strerror(code))).")
        }
    }
}

extension Downloader {
    /// libcurl's own version and those of what it was built with.
    public static var libraryVersion: String { String(cString: curl_version()) }
}
