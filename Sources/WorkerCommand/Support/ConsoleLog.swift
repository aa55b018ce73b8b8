import Logging

/// Log lines for people, on standard error: `warning: A helper died. error=…`
struct ConsoleLog: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    let line: ProgressLine?

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let extra = metadata.merging(event.metadata ?? [:]) { $1 }.sorted { $0.key < $1.key }
        let tail = extra.map { " \($0.key)=\($0.value)" }.joined()
        let text = Terminal.safe("\(event.level): \(event.message)\(tail)")
        guard let line else { return Terminal.error(text) }
        line.log(text)
    }
}
