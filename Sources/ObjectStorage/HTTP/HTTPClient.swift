/// Sends requests over kept connections, some of them at once. One thread runs libcurl's loop; it starts with the first
/// request and ends with the client.
final class HTTPClient: Sendable {
    struct Settings: Hashable, Sendable {
        /// The user agent.
        var agent = "PrefetchWorker"
        /// Exchanges at once; further ones wait.
        var connections = 16
        /// A file of certificates of authorities in PEM, instead of the system's.
        var authorities: String?
    }

    private let loop: HTTPLoop

    init(_ settings: Settings) { loop = HTTPLoop(settings) }

    deinit { loop.close() }

    /// Cancelling the task ends the exchange at once.
    func answer(to request: HTTPRequest) async throws(ExchangeFailure) -> HTTPAnswer {
        let id = loop.newID()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                loop.add(HTTPLoop.Job(id: id, request: request, continuation: continuation))
            }
        } onCancel: {
            loop.cancel(id)
        }
        return try result.get()
    }
}
