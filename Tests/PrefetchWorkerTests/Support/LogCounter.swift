import Logging
import TestSupport

/// A log that can be asked what was said.
struct LogCounter: Sendable {
    private let said = Shared<[String]>([])

    var logger: Logger {
        var logger = Logger(label: "test") { [said] _ in Handler(said: said) }
        logger.logLevel = .trace
        return logger
    }

    func messages(containing text: String) -> Int {
        said.withLock { $0.count { $0.contains(text) } }
    }

    private struct Handler: LogHandler {
        let said: Shared<[String]>
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            said.withLock { $0.append("\(event.message)") }
        }
    }
}
