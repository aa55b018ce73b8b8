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
        "A file with the dashboard's token, which addresses that other machines can reach require.")
    static let all: [any NamedSetting] = [address, tokenFile]
}

/// The dashboard's token, for every command that serves it.
struct DashboardTokenOption: ParsableArguments {
    @Option(DashboardSettings.tokenFile) var dashboardTokenFile: String?

    /// A server for the address.
    func server(
        at address: String, _ common: CommonOptions, _ settings: Settings, _ store: JobStore, host: any DashboardHost,
    ) throws -> DashboardServer {
        do {
            let options = DashboardServer.Options(
                address: try ListenAddress(parsing: address),
                token: try settings.optional(DashboardSettings.tokenFile, dashboardTokenFile).map(Self.token),
                cache: try common.cachePath(settings), redaction: try common.redaction())
            return try DashboardServer(options, store: store, host: host)
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
    @OptionGroup var token: DashboardTokenOption

    /// What serves the dashboard beside a worker; nil if none is wanted.
    func service(
        _ common: CommonOptions, _ access: ListAccess,
    ) throws -> (@Sendable (RunStatistics) async throws(WorkerError) -> Void)? {
        let settings = try common.settings()
        guard let address = try settings.optional(DashboardSettings.address, dashboard) else { return nil }
        // Checked before anything begins.
        do { _ = try ListenAddress(parsing: address) } catch { throw SettingsError(error.description) }
        return { statistics throws(WorkerError) in
            do {
                // A connection of its own, so that a page that is slow to read holds no item up.
                let store = try await JobStore.opening(path: try common.databasePath(settings))
                let service = DashboardService(
                    store: store, cache: try common.cachePath(settings), access: access, statistics: statistics)
                let server = try token.server(at: address, common, settings, store, host: service)
                try await server.run { Terminal.error("The dashboard is at http://\($0)/") }
                try await store.close()
            } catch let error as DashboardError {
                throw WorkerError(.unavailable, error.description)
            } catch {
                throw WorkerError(ofCommand: error)
            }
        }
    }
}
