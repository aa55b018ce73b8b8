import Foundation
import Glibc
import Jobs
import Logging

/// How log lines are written on standard error.
enum LogFormat: String, CaseIterable, Sendable {
    /// For people: `warning: A helper died. error=…`
    case text
    /// For programs: an object on each line, with `time`, `level`, `message` and `metadata`.
    case json
    /// For systemd's journal, which reads the priority from the beginning of the line: `<4>A helper died. error=…`
    case journal

    /// `journal` if standard error is systemd's journal, whose socket JOURNAL_STREAM names by device and inode;
    /// otherwise `text`.
    static func usual(_ environment: [String: String] = ProcessInfo.processInfo.environment) -> LogFormat {
        var info = stat()
        guard let stream = environment["JOURNAL_STREAM"], fstat(STDERR_FILENO, &info) == 0 else { return .text }
        return stream == "\(info.st_dev):\(info.st_ino)" ? .journal : .text
    }
}

/// Log lines on standard error.
struct ConsoleLog: LogHandler {
    var logLevel: Logger.Level
    var metadata: Logger.Metadata = [:]
    let format: LogFormat
    let line: LiveDisplay?
    /// For URLs in the metadata.
    var redaction = Redaction()

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    private struct Line: Encodable {
        let time, level, message: String
        let metadata: [String: String]?
    }

    func log(event: LogEvent) {
        var extra = metadata.merging(event.metadata ?? [:]) { $1 }
        if let url = extra["url"] { extra["url"] = "\(redaction.shown("\(url)"))" }
        let text = text(event, extra)
        guard let line else { return Terminal.error(text) }
        line.log(text)
    }

    private func text(_ event: LogEvent, _ extra: Logger.Metadata) -> String {
        let tail = extra.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        switch format {
        case .text: return Terminal.safe("\(event.level): \(event.message)\(tail)")
        case .journal: return "<\(event.level.priority)>" + Terminal.safe("\(event.message)\(tail)")
        case .json:
            let line = Line(
                time: Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)),
                level: event.level.rawValue, message: "\(event.message)",
                metadata: extra.isEmpty ? nil : extra.mapValues { "\($0)" })
            // Best effort: text can always be encoded, and a lost log line is no reason to stop.
            return (try? Output.json(line)) ?? "{}"
        }
    }
}

extension Logger.Level {
    /// The priority of syslog(3).
    fileprivate var priority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}
