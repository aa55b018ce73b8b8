internal import Glibc
internal import Hummingbird
public import Jobs
internal import Logging
internal import NIOCore
public import PrefetchWorker
internal import ServiceLifecycle
internal import Synchronization

/// The calls from the dashboard to the program that runs it.
public protocol DashboardHost: Sendable {
    /// The metrics in Prometheus' text format.
    func metrics() async throws -> String
    /// Why no work can be done at this moment, in a sentence; nil if all is well.
    func problem() async -> String?
    /// Adds a job.
    ///
    /// - Throws: ``RequestMistake``, or a `JobsError`.
    func enqueue(_ request: EnqueueRequest) async throws -> JobID
    /// Starts a run of a schedule, and returns its result as a sentence.
    ///
    /// - Throws: ``RequestMistake``, or a `JobsError`.
    func runSchedule(named name: String) async throws -> String
}

/// What is wrong with a request, and what would be right, as a sentence for the user.
public struct RequestMistake: Error {
    public let message: String

    public init(_ message: String) { self.message = message }
}

/// A job from the dashboard's form.
public struct EnqueueRequest: Codable, Sendable {
    /// A URL in each line.
    public var urls: String
    public var name: String?
    /// In the short form, separated by spaces.
    public var variants: String?
    public var options: String?
    public var priority: Int?
}

/// The dashboard: pages, their data, actions, metrics and health, over HTTP.
public final class DashboardServer: Sendable {
    /// Where it listens and what it shows.
    public struct Options: Sendable {
        public let address: ListenAddress
        /// Nil for an address of this machine only.
        public let token: String?
        public let cache: CacheLocation
        public let redaction: Redaction

        /// - Throws: ``DashboardError`` if other machines could connect without a token, or the token is too short.
        public init(
            address: ListenAddress, token: String?, cache: CacheLocation, redaction: Redaction,
        ) throws(DashboardError) {
            try AccessGuard.check(token: token, at: address)
            self.address = address
            self.token = token
            self.cache = cache
            self.redaction = redaction
        }
    }

    private let options: Options
    private let responder: DashboardResponder

    public init(_ options: Options, store: JobStore, host: any DashboardHost) {
        self.options = options
        let shown = ShownURLs(options.redaction)
        responder = DashboardResponder(
            access: AccessGuard(token: options.token),
            data: DashboardData(store: store, cache: options.cache, redaction: options.redaction, shown: shown),
            actions: DashboardActions(store: store, host: host, shown: shown), host: host)
    }

    /// Serves until its task is cancelled.
    ///
    /// - Parameter onListening: called once with the address that clients may connect to.
    /// - Throws: ``DashboardError`` if it can't listen there.
    public func run(onListening: @escaping @Sendable (ListenAddress) -> Void = { _ in }) async throws(DashboardError) {
        let began = Atomic(false)
        let application = Application(
            responder: responder,
            server: .http1(configuration: .init(idleTimeout: .seconds(120))),
            configuration: ApplicationConfiguration(
                address: .hostname(options.address.host, port: options.address.port), serverName: nil),
            onServerRunning: { [options] channel in
                began.store(true, ordering: .relaxed)
                let port = channel.localAddress?.port ?? options.address.port
                // Best effort: the parts of a valid address make a valid one.
                if let address = try? ListenAddress(parsing: "\(Self.bracketed(options.address.host)):\(port)") {
                    onListening(address)
                }
            },
            logger: Logger(label: "dashboard") { _ in SwiftLogNoOpLogHandler() })
        do {
            try await application.run()
        } catch {
            guard !Task.isCancelled, !began.load(ordering: .relaxed) else { return }
            throw DashboardError(
                "The dashboard can't listen at \(options.address): \(Self.reason(error)). Choose another port, or end the "
                    + "program that uses it.")
        }
    }

    private static func bracketed(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }

    private static func reason(_ error: any Error) -> String {
        guard let error = error as? IOError else { return "\(error)" }
        return switch error.errnoCode {
        case EADDRINUSE: "the port is in use"
        case EADDRNOTAVAIL: "this machine has no such address"
        case EACCES: "the port may be used by root only"
        default: String(cString: strerror(error.errnoCode))
        }
    }
}
