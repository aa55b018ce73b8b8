import CCurl
import Synchronization
public import SystemPackage

/// Fetches URLs over HTTP and HTTPS into files, most urgent first, within limits per host and in all.
///
/// One thread drives libcurl for all transfers; calls may come from anywhere. Nothing is tried again in here: a failure
/// carries its class, and the caller decides. Only what an origin asks for with `Retry-After` is granted at once: its host is
/// blocked before anything that waits could start.
public final class Downloader: Sendable {
    public let configuration: DownloadConfiguration
    private let exchange: Exchange
    private let robots: RobotsKeeper

    /// - Parameters:
    ///   - makeFile: makes the file for a body, when its first bytes are there. Called on the download thread; an
    ///     `Errno` it throws becomes ``DownloadFailure/Code/disk(_:)``.
    ///   - makeRoom: what keeps account of the bytes of a body; nil where nobody does.
    ///   - inspect: judges a body by its first bytes so far, at most 64 KiB, on the download thread, until it is
    ///     decided. A refusal cuts the transfer. What stays undecided is accepted.
    /// - Throws: `internalError` when libcurl or the thread cannot be started or `caFile` cannot be read.
    public init(
        configuration: DownloadConfiguration,
        makeFile: @escaping @Sendable () throws -> FileDescriptor,
        makeRoom: @escaping @Sendable () -> (any BodyRoom)? = { nil },
        inspect: @escaping @Sendable (UnsafeRawBufferPointer) -> BodyVerdict,
    ) throws(DownloadFailure) {
        try CurlLibrary.start()
        try Self.checkReadable(configuration.caFile)
        self.configuration = configuration
        robots = RobotsKeeper(agent: configuration.agentName)
        let loop = try TransferLoop(
            configuration, tools: Transfer.Tools(makeFile: makeFile, makeRoom: makeRoom, inspect: inspect))
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
        return await travel(request, from: url)
    }

    /// Goes along the redirects that lead to other hosts. Each host is asked by its own rules: it has a queue, limits and
    /// waits of its own. Where robots.txt counts, that of each hop is asked first.
    private func travel(_ request: DownloadRequest, from beginning: DownloadURL) async -> DownloadOutcome {
        var hop = Hop(url: beginning)
        while true {
            if request.respectsRobotsText {
                let objection = await robots.objection(to: hop.url, for: request) { [self] in await download($0) }
                if let objection { return .failed(objection) }
            }
            switch await transfer(request, hop, from: beginning) {
            case .outcome(let outcome): return outcome
            case .redirect(let next): hop = next
            }
        }
    }

    private enum TransferEnd: Sendable {
        case outcome(DownloadOutcome)
        case redirect(Hop)
    }

    private func transfer(_ request: DownloadRequest, _ hop: Hop, from beginning: DownloadURL) async -> TransferEnd {
        let id = exchange.nextID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<TransferEnd, Never>) in
                let ticket = Ticket(
                    id: id, request: request, hop: hop, beginning: beginning,
                    onRedirect: { continuation.resume(returning: .redirect($0)) },
                    answer: { continuation.resume(returning: .outcome($0)) })
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
    public func block(host: String, for duration: Duration, _ reason: HostBlock = .asked) {
        exchange.block(HostName.normal(host), until: .now + duration, reason)
    }

    /// Until when a host is blocked, and why; nil when it is not.
    public func blocked(_ host: String) -> (until: ContinuousClock.Instant, reason: HostBlock)? {
        exchange.blocked(HostName.normal(host))
    }

    /// Whether any host may be blocked; to ask for each of them is not needed where none is.
    public var blocksHosts: Bool { exchange.holdsBack }

    /// Takes up what an earlier downloader had learnt of a host.
    public func restore(host: String, window: Double?, parks: Int) {
        exchange.restore(HostName.normal(host), window: window, parks: parks)
    }

    /// What another worker knows of a host that fails.
    public func adopt(host: String, silence: HostSilence) { exchange.adopt(HostName.normal(host), silence) }

    /// Another worker was answered by this host.
    public func noteAnswered(host: String) { exchange.noteAnswered(HostName.normal(host)) }

    /// What a host has failed with that has never answered and has had its time; nil for all others.
    public func givenUp(_ host: String) -> HostSilence? { exchange.givenUp(HostName.normal(host)) }

    /// What has waited in the queue for so long.
    public func waits(longerThan time: Duration) -> [DownloadWait] { exchange.waits(longerThan: time) }

    /// What has waited so long until a robots.txt is read, by the host whose it is.
    public func robotsWaits(longerThan time: Duration) -> [DownloadWait] { robots.waits(longerThan: time) }

    /// What this downloader may use of its limits, where others use some of them as well.
    ///
    /// - Parameters:
    ///   - concurrency: transfers at once; nil for all.
    ///   - hosts: of each host, nothing of one that isn't named; nil for all.
    public func setShares(concurrency: Int?, hosts: [String: HostShare]?) {
        exchange.setShares(concurrency: concurrency, hosts: hosts)
    }

    /// The hosts that have anything to tell, in no order.
    public var hosts: [HostSnapshot] { exchange.snapshots() }

    /// The host name that budgets and blocks of this URL go by; nil for a URL that cannot be sent.
    public static func host(of url: String) -> String? {
        // Why it cannot be sent is what a download of it would say.
        (try? DownloadURL(url, maxBytes: .max).host).map(HostName.normal)
    }

    /// Whether a request of the one URL may be told what is meant for the other's scheme, host and port.
    public static func haveSameOrigin(_ one: String, _ other: String) -> Bool {
        // One that can't be sent is told nothing.
        guard let one = try? DownloadURL(one, maxBytes: .max), let other = try? DownloadURL(other, maxBytes: .max)
        else { return false }
        return one.origin == other.origin
    }

    /// The transfers that have run for more than a second, as they stood less than a second ago.
    public var progress: [DownloadProgress] { exchange.state.withLock { $0.progress } }

    public var counts: DownloadCounts { exchange.counts }

    /// Takes effect on what starts next; nothing that runs is cut.
    ///
    /// - Parameter special: limits of single hosts, by name.
    public func setLimits(concurrency: Int, limits: HostLimits, special: [String: HostLimits] = [:]) {
        let special = Dictionary(special.map { (HostName.normal($0.key), $0.value) }, uniquingKeysWith: { $1 })
        exchange.setLimits(concurrency: min(max(1, concurrency), 1_000), limits: limits, special: special)
    }

    /// Ends what waits at hosts that are blocked for longer than `time` yet or were given up, as
    /// ``DownloadFailure/Code/crowded``.
    public func sendAwayBlocked(longerThan time: Duration) { exchange.sendAwayBlocked(longerThan: time) }

    /// Ends what waits at hosts where more than `limit` requests do, the least urgent first, as
    /// ``DownloadFailure/Code/crowded``.
    ///
    /// - Returns: how many there were.
    public func shed(over limit: Int) -> Int { exchange.shed(over: limit) }

    /// Ends what waits, and everything asked for from now on, as cancelled; what runs goes on to its end, as long as it gets
    /// anything.
    public func cancelWaiting() { exchange.settle() }

    /// Ends everything waiting and running as cancelled, and returns when the thread has freed what it held. Downloads
    /// asked for from now on are cancelled at once.
    public func shutdown() async {
        await exchange.closeAndWait()
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

/// How far a transfer has come that has run for a while.
public struct DownloadProgress: Sendable, Hashable {
    /// ``DownloadRequest/id``.
    public let id: Int64
    /// Bytes of the body as it is sent.
    public let received: Int64
    /// Nil where the origin didn't say.
    public let expected: Int64?
}

/// What a downloader has in hand.
public struct DownloadCounts: Sendable, Hashable {
    /// Transfers, silent ones included.
    public var running = 0
    /// Transfers that have got nothing for a while; they keep no other host waiting.
    public var silent = 0
    public var waiting = 0
    /// Places for transfers that nobody uses or may use, though somebody may wait for a busy host.
    public var room = 0
    /// Bodies that arrived and nobody has used yet.
    public var unconsumed = 0
    /// Bytes of bodies as they were sent, since the start.
    public var bytes: Int64 = 0
    /// Announced bytes of bodies that were refused before they had come.
    public var saved: Int64 = 0
}
