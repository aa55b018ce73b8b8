import ArgumentParser
import Dashboard
import FoundationEssentials
import Jobs
import PrefetchWorker

enum DashboardSettings {
    static let address = Setting.text(
        "dashboard", nil, "address",
        "Also serve the dashboard, /metrics, /healthz and /readyz at an address such as 127.0.0.1:8080.")
    static let tokenFile = Setting.text(
        "dashboard-token-file", nil, "file",
        "A file with the dashboard's token, required at addresses that other machines can reach.")
    static let all: [any NamedSetting] = [address, tokenFile]

    /// The options of a server at the address: its token, the cache and the redaction of URLs.
    static func serverOptions(
        at address: String, tokenFile path: String?, _ common: CommonOptions, _ settings: Settings,
    ) throws -> DashboardServer.Options {
        do {
            return try DashboardServer.Options(
                address: try ListenAddress(parsing: address),
                token: try settings.optional(tokenFile, path).map(token),
                cache: try common.cacheLocation(settings), redaction: try common.redaction())
        } catch let error as DashboardError {
            throw SettingsError(error.description)
        }
    }

    private static func token(inFile path: String) throws(SettingsError) -> String {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw SettingsError("The file of --dashboard-token-file, \(path), can't be read.")
        }
        let text = String(decoding: data, as: UTF8.self)
        return String(text.drop(while: \.isWhitespace).prefix { !$0.isWhitespace })
    }
}

/// The dashboard beside a worker.
struct DashboardOptions: ParsableArguments {
    @Option(DashboardSettings.address) var dashboard: String?
    @Option(DashboardSettings.tokenFile) var dashboardTokenFile: String?

    /// Serves the dashboard beside a worker, and calls its last parameter once it listens.
    typealias Service = @Sendable (RunStatistics, @escaping @Sendable () -> Void) async throws(WorkerError) -> Void

    /// - Returns: nil without `--dashboard`.
    /// - Throws: `usage` if it can't be served there, before the worker begins.
    func service(
        _ common: CommonOptions, _ access: ListAccess,
    ) throws -> Service? {
        let settings = try common.settings()
        guard let address = try settings.optional(DashboardSettings.address, dashboard) else { return nil }
        let options = try DashboardSettings.serverOptions(
            at: address, tokenFile: dashboardTokenFile, common, settings)
        let path = try common.databasePath(settings)
        return { statistics, onListening throws(WorkerError) in
            do {
                // A connection of its own, so that a slow query of a page does not delay items.
                let store = try await JobStore.opening(path: path)
                let service = DashboardService(
                    store: store, cache: options.cache.folder, access: access, statistics: statistics)
                try await DashboardServer(options, store: store, host: service).run {
                    Terminal.error("The dashboard is at http://\($0)/")
                    onListening()
                }
                try await store.close()
            } catch let error as DashboardError {
                throw WorkerError(.unavailable, error.description)
            } catch {
                throw WorkerError(ofCommand: error)
            }
        }
    }
}
