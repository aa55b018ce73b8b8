import CCurl
public import Core
import Synchronization
public import SystemPackage

/// Fetches URLs over HTTP and HTTPS into files, most urgent first, within limits per host and in all.
///
/// One thread drives libcurl for all transfers; calls may come from anywhere. Nothing is tried again in here: a failure
/// carries its class, and the caller decides. Only what an origin asks for with `Retry-After` is granted at once: its
/// host is blocked before anything that waits could start.
public final class Downloader: Sendable {
    public let configuration: DownloadConfiguration
    private let scheduler: DownloadScheduler
    private let robots: RobotsKeeper

    /// - Parameters:
    ///   - makeFile: makes the file for a body, when its first bytes are there. Called on the download thread; an
    ///     `Errno` it throws becomes ``FailureClass/diskFull`` or ``FailureClass/diskError``.
    ///   - makeRoom: makes the reservation of disk space for a body; nil for none.
    ///   - inspect: judges a body by its first bytes so far, at most 64 KiB, on the download thread, until it is
    ///     decided. A refusal cuts the transfer. What stays undecided is accepted.
    ///   - measure: tells the pixels that the header of an accepted body says, for requests with a filter.
    /// - Throws: `internalError` when libcurl or the thread cannot be started or `caFile` cannot be read.
    public init(
        configuration: DownloadConfiguration,
        makeFile: @escaping @Sendable () throws -> FileDescriptor,
        makeRoom: @escaping @Sendable () -> (any SpaceReservation)? = { nil },
        inspect: @escaping @Sendable (UnsafeRawBufferPointer) -> BodyVerdict,
        measure: @escaping @Sendable (UnsafeRawBufferPointer) -> (width: Int, height: Int)? = { _ in nil },
    ) throws(Failure) {
        try CurlLibrary.start()
        try Self.checkReadable(configuration.caFile)
        self.configuration = configuration
        robots = RobotsKeeper(agent: configuration.agentName)
        let loop = try TransferLoop(
            configuration,
            tools: Transfer.Tools(makeFile: makeFile, makeRoom: makeRoom, inspect: inspect, measure: measure))
        scheduler = DownloadScheduler(configuration: configuration, bell: loop.bell)
        try TransferThread.start(loop, scheduler: scheduler)
    }

    deinit { scheduler.close() }

    /// Fetches one URL. Never throws; cancelling the task cancels the transfer.
    public func download(_ request: DownloadRequest) async -> DownloadOutcome<BodyFile> {
        let url: DownloadURL
        do throws(Failure) {
            url = try DownloadURL(request.url, maxBytes: configuration.maxURLBytes)
            try HeaderRules.check(request)
        } catch {
            var failure = error
            // Nothing was asked, and nothing is spared by a list.
            failure.isListed = false
            return .failed(failure)
        }
        return await followRedirects(request, from: url)
    }

    /// Follows redirects to other hosts. Each host has its own queue, limits and
    /// waits. Where robots.txt counts, that of each hop is asked first.
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

    private enum TransferEnd: Sendable {
        case outcome(DownloadOutcome<BodyFile>)
        case redirect(Hop)
    }

    private func transfer(_ request: DownloadRequest, _ hop: Hop, from beginning: DownloadURL) async -> TransferEnd {
        let id = scheduler.nextID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<TransferEnd, Never>) in
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

    /// Moves the waiting downloads whose ``DownloadRequest/id`` is `id`; those that run or ended stay as they are.
    public func update(priority: Int, rank: Int64, for id: Int64) {
        scheduler.update(priority: priority, rank: rank, for: id)
    }

    /// Whether a download with this ``DownloadRequest/id`` waits for its turn.
    public func isWaiting(_ id: Int64) -> Bool { scheduler.state.withLock { $0.queue.isWaiting(id) } }

    /// Nothing new starts on this host until then; what waits stays in the queue, what runs goes on. A shorter block
    /// does not undo a longer one.
    public func block(host: String, for duration: Duration, _ reason: HostBlock = .asked) {
        scheduler.block(HostName.normal(host), until: .now + duration, reason)
    }

    /// Until when a host is blocked, and why; nil when it is not.
    public func blocked(_ host: String) -> (until: ContinuousClock.Instant, reason: HostBlock)? {
        scheduler.blocked(HostName.normal(host))
    }

    /// Whether any host may be blocked; to ask for each of them is not needed where none is.
    public var blocksHosts: Bool { scheduler.holdsBack }

    /// Takes up what an earlier downloader had learnt of a host.
    public func restore(host: String, window: Double?, circuitOpenCount: Int) {
        scheduler.restore(HostName.normal(host), window: window, circuitOpenCount: circuitOpenCount)
    }

    /// Takes over another worker's knowledge of a host that fails.
    public func adopt(host: String, silence: HostSilence) { scheduler.adopt(HostName.normal(host), silence) }

    /// Another worker was answered by this host.
    public func noteAnswered(host: String) { scheduler.noteAnswered(HostName.normal(host)) }

    /// The failures of a host that has never answered and was given up; nil for all others.
    public func givenUp(_ host: String) -> HostSilence? { scheduler.givenUp(HostName.normal(host)) }

    /// Requests that have waited in the queue for so long.
    public func waits(longerThan time: Duration) -> [DownloadWait] { scheduler.waits(longerThan: time) }

    /// Requests that have waited for so long for a robots.txt, by its host.
    public func robotsWaits(longerThan time: Duration) -> [DownloadWait] { robots.waits(longerThan: time) }

    /// This downloader's share of its limits, where other workers use the same hosts.
    ///
    /// - Parameters:
    ///   - concurrency: transfers at once; nil for all.
    ///   - hosts: of each host, nothing of one that isn't named; nil for all.
    public func setShares(concurrency: Int?, hosts: [String: HostShare]?) {
        scheduler.setShares(concurrency: concurrency, hosts: hosts)
    }

    /// The hosts that have anything to tell, in no order.
    public var hosts: [HostSnapshot] { scheduler.snapshots() }

    /// The host name that budgets and blocks of this URL go by; nil for a URL that cannot be sent.
    public static func host(of url: String) -> String? {
        // A download of it would report the reason.
        (try? DownloadURL(url, maxBytes: .max).host).map(HostName.normal)
    }

    /// Whether both URLs have the same scheme, host and port, so that one's credentials may go to the other.
    public static func haveSameOrigin(_ one: String, _ other: String) -> Bool {
        // A URL that can't be sent has no origin.
        guard let one = try? DownloadURL(one, maxBytes: .max), let other = try? DownloadURL(other, maxBytes: .max)
        else { return false }
        return one.origin == other.origin
    }

    /// The transfers that have run for more than a second, as they stood less than a second ago.
    public var progress: [DownloadProgress] { scheduler.state.withLock { $0.progress } }

    public var counts: DownloadCounts { scheduler.counts }

    /// Takes effect on what starts next; nothing that runs is cut.
    ///
    /// - Parameter special: limits of single hosts, by name.
    public func setLimits(concurrency: Int, limits: HostLimits, special: [String: HostLimits] = [:]) {
        let special = Dictionary(special.map { (HostName.normal($0.key), $0.value) }, uniquingKeysWith: { $1 })
        scheduler.setLimits(concurrency: min(max(1, concurrency), 1_000), limits: limits, special: special)
    }

    /// Ends what waits at hosts that are blocked for longer than `time` yet or were given up, as
    /// ``DownloadOutcome/crowded(_:)``.
    public func sendAwayBlocked(longerThan time: Duration) { scheduler.sendAwayBlocked(longerThan: time) }

    /// Ends what waits at hosts where more than `limit` requests do, the least urgent first, as
    /// ``DownloadOutcome/crowded(_:)``.
    ///
    /// - Returns: how many there were.
    public func shed(over limit: Int) -> Int { scheduler.shed(over: limit) }

    /// Ends what waits, and everything asked for from now on, as cancelled; what runs goes on to its end, as long as it
    /// gets anything.
    public func cancelWaiting() { scheduler.settle() }

    /// Ends everything waiting and running as cancelled, and returns when the thread has freed what it held. Downloads
    /// asked for from now on are cancelled at once.
    public func shutdown() async {
        await scheduler.closeAndWait()
    }

    private static func checkReadable(_ caFile: String?) throws(Failure) {
        guard let caFile else { return }
        do {
            try FileDescriptor.open(FilePath(caFile), .readOnly).close()
        } catch {
            throw Failure.internalFault("The certificate file \(caFile) cannot be read: \(error).")
        }
    }
}

/// libcurl's global state, made once and kept until the process ends.
private enum CurlLibrary {
    private static let code = curl_global_init(Int(CURL_GLOBAL_SSL))

    static func start() throws(Failure) {
        guard code == CURLE_OK else {
            throw Failure.internalFault("libcurl cannot be started: \(String(cString: curl_easy_strerror(code))).")
        }
    }
}

extension Downloader {
    /// libcurl's own version and those of what it was built with.
    public static var libraryVersion: String { String(cString: curl_version()) }
}
