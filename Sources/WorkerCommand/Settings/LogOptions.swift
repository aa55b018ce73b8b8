import ArgumentParser
import Jobs
import Logging

enum LogSettings {
    enum Level: String, CaseIterable, Sendable {
        case debug, info, notice, warning, error

        var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .notice }
    }

    static let level = Setting<Level>.choice(
        "log-level", .notice,
        "The least important log lines to print: debug (each item that ends), info (items that fail), notice, warning or error.",
        placeholder: "level")
    static let format = Setting<LogFormat>.choice(
        "log-format", nil,
        "How log lines are written: text, json (an object on each line) or journal (with systemd's priorities); without it text, and journal under systemd.",
        placeholder: "format")
    static let all: [any NamedSetting] = [level, format]
}

/// The log lines of a run.
struct LogOptions: ParsableArguments {
    @Option(LogSettings.level) var logLevel: LogSettings.Level?
    @Option(LogSettings.format) var logFormat: LogFormat?

    func handler(_ settings: Settings, line: LiveDisplay?, hiding redaction: Redaction) throws -> ConsoleLog {
        ConsoleLog(
            logLevel: try settings.value(LogSettings.level, logLevel).level,
            format: try settings.optional(LogSettings.format, logFormat) ?? .usual(), line: line, redaction: redaction)
    }
}
