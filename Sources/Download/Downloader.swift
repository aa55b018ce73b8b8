import CCurl
public import Core
import Synchronization
public import SystemPackage

/// Downloads HTTP and HTTPS URLs into files, most urgent first, within limits for each host and in all.
///
/// One thread drives libcurl for all transfers; its methods may be called from any thread. The downloader retries
/// nothing: a failure has its class, and the caller decides. It applies `Retry-After` itself, immediately, so that no
/// waiting request starts in between.
public final class Downloader: Sendable {
    public let configuration: DownloadConfiguration
    private let scheduler: DownloadScheduler
    private let robots: RobotsKeeper

    /// - Parameters:
    ///   - makeFile: makes the file for a body when the body's first bytes arrive. Called on the download thread; an
    ///     `Errno` that it throws becomes ``FailureClass/diskFull`` or ``FailureClass/diskError``.
    ///   - makeReservation: makes the reservation of disk space for the body of the request with this id; nil for none.
    ///   - inspect: inspects a body's first bytes so far, at most 64 KiB, on the download thread, until it decides. If
    ///     it refuses, the transfer ends. A body that stays undecided is accepted.
    ///   - measure: reads the size in pixels from the header of an accepted body, for requests with a filter.
    /// - Throws: `Failure.internalFault` if libcurl or the thread cannot be started, or `caFile` cannot be read.
    public init(
        configuration: DownloadConfiguration,
        makeFile: @escaping @Sendable () throws -> FileDescriptor,
        makeReservation: @escaping @Sendable (Int64?) -> (any SpaceReservation)? = { _ in nil },
        inspect: @escaping @Sendable (UnsafeRawBufferPointer) -> BodyVerdict,
        measure: @escaping @Sendable (UnsafeRawBufferPointer) -> (width: Int, height: Int)? = { _ in nil },
    ) throws(Failure) {
        try CurlLibrary.start()
        try Self.checkReadable(configuration.caFile)
        self.configuration = configuration
        robots = RobotsKeeper(agent: configuration.agentName)
        let loop = try TransferLoop(
            configuration,
            tools: Transfer.Tools(
                makeFile: makeFile, makeReservation: makeReservation, inspect: inspect, measure: measure))
        scheduler = DownloadScheduler(configuration: configuration, bell: loop.bell)
        try TransferThread.start(loop, scheduler: scheduler)
    }

    deinit { scheduler.close() }

    /// Downloads one URL. Never throws; cancelling the task cancels the transfer.
    public func download(_ request: DownloadRequest) async -> DownloadOutcome<BodyFile> {
        let url: DownloadURL
        do throws(Failure) {
            url = try DownloadURL(request.url, maxBytes: configuration.maxURLBytes)
            try HeaderRules.check(request)
        } catch {
            var failure = error
            // No request was made, so blacklisting the URL would save none.
            failure.isListed = false
            return .failed(failure)
        }
        return await followRedirects(request, from: url)
    }

    /// Follows redirects to other hosts. Each host has its own queue, limits and waits. With `respectsRobotsText` the
    /// robots.txt of each hop's host is checked first.
    private func followRedirects(_ request: DownloadRequest, from beginning: DownloadURL) async -> DownloadOutcome<
        BodyFile
    > {
        var hop = Hop(url: beginning)
        while true {
            if request.respectsRobotsText {
                let objection = await robots.objection(to: hop.url, for: request) { [self] in await download($0) }
                if let objection { return objection }
            }
            switch await transfer(request, hop, from: beginning) {
            case .outcome(let outcome): return outcome
            case .redirect(let next): hop = next
            }
        }
    }

    private enum HopResult: Sendable {
        case outcome(DownloadOutcome<BodyFile>)
        case redirect(Hop)
    }

    private func transfer(_ request: DownloadRequest, _ hop: Hop, from beginning: DownloadURL) async -> HopResult {
        let id = scheduler.nextID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<HopResult, Never>) in
                let queued = QueuedTransfer(
                    id: id, request: request, hop: hop, beginning: beginning,
                    onRedirect: { continuation.resume(returning: .redirect($0)) },
                    answer: { continuation.resume(returning: .outcome($0)) })
                scheduler.submit(queued, isCancelled: { Task.isCancelled })
            }
        } onCancel: {
            scheduler.cancel(id)
        }
    }

    /// Re-ranks the waiting downloads whose ``DownloadRequest/id`` is `id`; it does not affect running ones.
    public func update(priority: Int, rank: Int64, for id: Int64) {
        scheduler.update(priority: priority, rank: rank, for: id)
    }

    /// Whether a download with this ``DownloadRequest/id`` is queued.
    public func isWaiting(_ id: Int64) -> Bool { scheduler.state.withLock { $0.queue.isWaiting(id) } }

    /// Blocks a host for a time: no request starts, waiting requests stay in the queue, running transfers continue. A
    /// shorter block does not replace a longer one.
    public func block(host: String, for duration: Duration, _ reason: HostBlock = .retryAfter) {
        scheduler.block(HostName.normal(host), until: .now + duration, reason)
    }

    /// When the host's block ends, and its reason; nil if it is not blocked.
    public func blocked(_ host: String) -> (until: ContinuousClock.Instant, reason: HostBlock)? {
        scheduler.blocked(HostName.normal(host))
    }

    /// Whether any host may be blocked. If not, a caller need not check each host.
    public var blocksHosts: Bool { scheduler.holdsBack }

    /// Restores the state of a host from an earlier downloader.
    public func restore(host: String, window: Double?, circuitOpenCount: Int) {
        scheduler.restore(HostName.normal(host), window: window, circuitOpenCount: circuitOpenCount)
    }

    /// Adopts another worker's knowledge of a host that fails.
    public func adopt(host: String, silence: HostOutage) { scheduler.adopt(HostName.normal(host), silence) }

    /// Records that another worker got an answer from this host.
    public func noteAnswered(host: String) { scheduler.noteAnswered(HostName.normal(host)) }

    /// The failures of a host that has never answered and was given up; nil for all other hosts.
    public func givenUp(_ host: String) -> HostOutage? { scheduler.givenUp(HostName.normal(host)) }

    /// Requests that have been queued for longer than `time`.
    public func waits(longerThan time: Duration) -> [DownloadWait] { scheduler.waits(longerThan: time) }

    /// Requests that have waited for a host's robots.txt for longer than `time`.
    public func robotsWaits(longerThan time: Duration) -> [DownloadWait] { robots.waits(longerThan: time) }

    /// Sets this downloader's share of its limits, if other workers use the same hosts.
    ///
    /// - Parameters:
    ///   - concurrency: transfers at once; nil for all.
    ///   - hosts: the share of each host; a host that is not named gets none. Nil for all.
    public func setShares(concurrency: Int?, hosts: [String: HostShare]?) {
        scheduler.setShares(concurrency: concurrency, hosts: hosts)
    }

    /// Says that the shares in force hold: other workers knew of this one at this time. Without this, no request starts
    /// after a suspension of the process; see ``ShareLease``.
    public func confirmShares(asOf time: ContinuousClock.Instant) { scheduler.confirmShares(asOf: time) }

    /// The hosts with any state worth reporting, in no order.
    public var hosts: [HostSnapshot] { scheduler.snapshots() }

    /// The host name under which limits and blocks of this URL are kept; nil for a URL that cannot be sent.
    public static func host(of url: String) -> String? {
        // Best effort: a download of such a URL reports the error.
        (try? DownloadURL(url, maxBytes: .max).host).map(HostName.normal)
    }

    /// Whether both URLs have the same scheme, host and port, so that the credentials of one may be sent to the other.
    public static func haveSameOrigin(_ one: String, _ other: String) -> Bool {
        // Best effort: a URL that cannot be sent has no origin, and its download reports the error.
        guard let one = try? DownloadURL(one, maxBytes: .max), let other = try? DownloadURL(other, maxBytes: .max)
        else { return false }
        return one.origin == other.origin
    }

    /// The transfers that ran at the last look, at most 0.4 s ago.
    public var progress: [DownloadProgress] { scheduler.state.withLock { $0.progress } }

    public var counts: DownloadCounts { scheduler.counts }

    /// Sets the limits for requests that start from now on; running transfers are not cut.
    ///
    /// - Parameter special: limits of single hosts, by name.
    public func setLimits(concurrency: Int, limits: HostLimits, special: [String: HostLimits] = [:]) {
        let special = Dictionary(special.map { (HostName.normal($0.key), $0.value) }, uniquingKeysWith: { $1 })
        scheduler.setLimits(concurrency: min(max(1, concurrency), 1_000), limits: limits, special: special)
    }

    /// Ends the requests that wait for hosts which are given up, or blocked for longer than `time`, as
    /// ``DownloadOutcome/shed(_:)``.
    public func shedBlocked(longerThan time: Duration) { scheduler.shedBlocked(longerThan: time) }

    /// Ends requests at hosts where more than `limit` wait, the least urgent first, as ``DownloadOutcome/shed(_:)``.
    ///
    /// - Returns: the number of requests that it ended.
    public func shed(over limit: Int) -> Int { scheduler.shed(over: limit) }

    /// Ends all waiting requests, and all requests from now on, as cancelled. Running transfers continue while they
    /// receive bytes.
    public func cancelWaiting() { scheduler.drain() }

    /// Ends all waiting and running requests as cancelled, and returns when the thread has freed its resources.
    /// Requests from now on are cancelled at once.
    public func shutdown() async {
        await scheduler.closeAndWait()
    }

    private static func checkReadable(_ caFile: String?) throws(Failure) {
        guard let caFile else { return }
        do {
            try FileDescriptor.open(FilePath(caFile), .readOnly).close()
        } catch {
            throw Failure.internalFault("The certificate file \(caFile) can't be read: \(error).")
        }
    }
}

/// libcurl's global state, initialised once and kept until the process ends.
private enum CurlLibrary {
    private static let code = curl_global_init(Int(CURL_GLOBAL_SSL))

    static func start() throws(Failure) {
        guard code == CURLE_OK else {
            throw Failure.internalFault("libcurl cannot be started: \(String(cString: curl_easy_strerror(code))).")
        }
    }
}

extension Downloader {
    /// The versions of libcurl and of the libraries that it was built with.
    public static var libraryVersion: String { String(cString: curl_version()) }
}
