internal import Logging
internal import ServiceLifecycle

/// The services of a run. The last one ends by itself; then the others are asked to end in reverse order, each after
/// the one that follows it in the list has ended.
struct RunServices {
    private let bodies: [@Sendable () async -> Void]

    init(_ bodies: [@Sendable () async -> Void]) { self.bodies = bodies }

    private struct Part: Service {
        let body: @Sendable () async -> Void
        let isLast: Bool

        func run() async {
            await body()
            // A service that ends before its turn, such as abandoned helpers, would make the group cancel the others,
            // and those that wait to be closed would never end. Best effort: it throws if the group is cancelled.
            if !isLast { try? await gracefulShutdown() }
        }
    }

    /// Returns when all services have ended.
    func run() async {
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: bodies.enumerated().map { index, body in
                    ServiceGroupConfiguration.ServiceConfiguration(
                        service: Part(body: body, isLast: index == bodies.count - 1),
                        successTerminationBehavior: .gracefullyShutdownGroup)
                },
                logger: Logger(label: "services") { _ in SwiftLogNoOpLogHandler() }))
        // Best effort: no service throws.
        try? await group.run()
    }
}
