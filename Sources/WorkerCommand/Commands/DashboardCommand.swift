import ArgumentParser
import Dashboard
import Jobs
import PrefetchWorker

struct DashboardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dashboard",
        abstract: "Serves a page that shows and controls jobs, hosts, the cache and schedules.",
        discussion: """
            It needs no worker beside it, and shows all workers of the database. At addresses that other machines can reach it \
            requires a token, which a person enters once and Prometheus sends with /metrics as a bearer token. It speaks HTTP; \
            on a network that you do not trust, put a web server with TLS in front of it. Ctrl-C ends it.

            EXAMPLES:
              worker dashboard
              worker dashboard --listen 127.0.0.1:9000
              openssl rand -hex 24 >token.txt && worker dashboard --listen 0.0.0.0:8080 --dashboard-token-file token.txt
              curl -s http://127.0.0.1:8080/metrics
            """,
    )

    @OptionGroup var common: CommonOptions
    @Option(
        help: ArgumentHelp("The address and the port (127.0.0.1:8080); port 0 takes a free one.", valueName: "address"))
    var listen = "127.0.0.1:8080"
    @Option(DashboardSettings.tokenFile) var dashboardTokenFile: String?

    func run() async throws {
        try await reportingErrors {
            let options = try DashboardSettings.serverOptions(
                at: listen, tokenFile: dashboardTokenFile, common, try common.settings())
            try await common.withStore { store in
                let service = DashboardService(
                    store: store, cache: options.cache.folder,
                    access: ListAccess(common: common, folder: nil, addresses: []), statistics: nil)
                let server = DashboardServer(options, store: store, host: service)
                _ = try await stoppable { stop in
                    let serving = Task { try await server.run { Terminal.error("The dashboard is at http://\($0)/") } }
                    stop.whenRequested { serving.cancel() }
                    do {
                        try await serving.value
                    } catch let error as DashboardError {
                        throw WorkerError(.unavailable, error.description)
                    }
                }
            }
        }
    }
}
