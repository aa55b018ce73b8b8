import ArgumentParser
import Jobs

struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Shows the settings that are in force.",
        discussion: """
            EXAMPLES:
              worker config show
              WORKER_PER_HOST=2 worker config show --json
            """,
        subcommands: [ConfigShowCommand.self],
        defaultSubcommand: ConfigShowCommand.self,
    )
}

struct ConfigShowCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Shows the value of each setting and where it comes from.",
        discussion: """
            A setting comes from a flag, else from the environment (WORKER_PER_HOST=2), else from the configuration file \
            (per-host: 2), else from its default. A value that can't be read ends the command with exit code 64.

            EXAMPLES:
              worker config show
              worker config show --config worker.yaml --json
            """,
    )
    @OptionGroup var common: CommonOptions
    @Flag(help: "Show header lines and the proxy, which may hold secrets.") var showCredentials = false
    @Flag(help: "Print JSON.") var json = false

    private struct Line: Encodable {
        let name: String
        let value: String?
        let source: String
    }

    func run() async throws {
        try await reportingErrors {
            let settings = try common.settings()
            let flags = try flags(settings)
            let lines = try AllSettings.list.sorted { $0.name < $1.name }.map { setting in
                try flags[setting.name].map { Line(name: setting.name, value: $0, source: "--\(setting.name)") }
                    ?? line(setting, settings)
            }
            if json { return try lines.forEach { Terminal.print(try Output.json($0)) } }
            let width = lines.map(\.name.count).max() ?? 0
            let values = lines.map { $0.value ?? "-" }
            let widest = min(40, values.map(\.count).max() ?? 0)
            for (line, value) in zip(lines, values) {
                Terminal.print(
                    line.name.padding(to: width) + "  " + value.padding(to: widest) + "  " + line.source)
            }
        }
    }

    /// The common flags that were given to this command itself.
    private func flags(_ settings: Settings) throws -> [String: String] {
        var flags: [String: String] = [:]
        flags["db"] = common.db
        flags["cache"] = common.cache
        flags["wait"] = common.wait.map { "\($0)ms" }
        flags["redact"] = common.redact.isEmpty ? nil : common.redact.joined(separator: ",")
        return flags
    }

    private func line(_ setting: any NamedSetting, _ settings: Settings) throws(SettingsError) -> Line {
        guard let written = settings.written(setting) else {
            return Line(name: setting.name, value: setting.standardText, source: Settings.Source.standard.description)
        }
        for text in written.texts.count > 1 ? written.texts : written.texts.suffix(1) {
            do {
                try setting.check(text)
            } catch {
                throw settings.wrong(setting.name, from: written.source, error)
            }
        }
        let isHidden = setting.isSecret && !showCredentials
        return Line(
            name: setting.name,
            value: isHidden
                ? "(hidden)"
                : written.texts.map { showCredentials ? $0 : PostgresURL.shown($0) }.joined(separator: ", "),
            source: written.source.description)
    }
}

extension String {
    fileprivate func padding(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
}
