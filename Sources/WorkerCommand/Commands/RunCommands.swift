import ArgumentParser
import PrefetchWorker

/// The programs that variants may name, and their limits.
struct RunCommands: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A program that variants may name as command:NAME; repeatable. Without a version its file's hash is one.",
            valueName: "name=path[@version]"))
    var transformCommand: [String] = []

    @Option(help: ArgumentHelp("Time of one command for one picture (30s).", valueName: "time"))
    var commandTimeout: String?

    @Option(help: ArgumentHelp("Bytes a command may answer (64MiB).", valueName: "bytes"))
    var commandOutput: String?

    @Option(
        help: ArgumentHelp(
            "A program that has a say in allow, request, cache-key, response, bytes or blacklist.",
            valueName: "path:hook+hook"))
    var delegateCommand: String?

    func apply(to configuration: inout WorkerConfiguration, _ settings: Settings) throws {
        let text = settings.text(
            "transform-command", flag: transformCommand.isEmpty ? nil : transformCommand.joined(separator: ","))
        var names: Set<String> = []
        for part in (text ?? "").split(separator: ",") {
            let command = try TransformCommand(parsing: String(part))
            guard names.insert(command.name).inserted else {
                throw SettingsError(message: "transform-command names '\(command.name)' twice.")
            }
            configuration.commands.append(command)
        }
        configuration.delegateCommand = try settings.text("delegate-command", flag: delegateCommand).map {
            try DelegateCommand(parsing: $0)
        }
        var limits = configuration.commandLimits
        let time = try settings.milliseconds("command-timeout", flag: commandTimeout, default: 30_000)
        limits.bytes = Int(try settings.bytes("command-output", flag: commandOutput, default: Int64(limits.bytes)))
        guard time > 0, limits.bytes > 0 else {
            throw SettingsError(message: "command-timeout and command-output must be more than nothing.")
        }
        limits.time = .milliseconds(time)
        configuration.commandLimits = limits
    }
}
