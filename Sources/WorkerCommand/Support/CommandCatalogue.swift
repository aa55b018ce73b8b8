import ArgumentParser
import FoundationEssentials

/// The program's commands with their arguments, as the argument parser describes them.
struct CommandCatalogue: Decodable {
    let command: Command

    final class Command: Decodable {
        let commandName: String
        let shouldDisplay: Bool
        let subcommands: [Command]?
        let arguments: [Argument]?

        /// The commands below it that people may use.
        var children: [Command] { (subcommands ?? []).filter { $0.shouldDisplay && $0.commandName != "help" } }
        var options: [Argument] { (arguments ?? []).filter { $0.kind != .positional } }
        var positionals: [Argument] { (arguments ?? []).filter { $0.kind == .positional } }
        /// With their dashes: `--db`.
        var flags: [String] { options.flatMap(\.spellings) }

        func option(_ flag: String) -> Argument? { options.first { $0.spellings.contains(flag) } }
        func child(_ name: String) -> Command? { subcommands?.first { $0.commandName == name } }
    }

    struct Argument: Decodable {
        enum Kind: String, Decodable { case positional, option, flag }

        struct Name: Decodable {
            let kind: String
            let name: String
        }

        let kind: Kind
        let names: [Name]?
        let isRepeating: Bool
        let isOptional: Bool
        let valueName: String?
        let abstract: String?

        var spellings: [String] { (names ?? []).map { ($0.kind == "long" ? "--" : "-") + $0.name } }
    }

    /// Nil if the parser describes itself in a way that this program does not know.
    static func make() -> CommandCatalogue? {
        // Best effort: without it, the parser's own messages report mistakes.
        try? JSONDecoder().decode(CommandCatalogue.self, from: Data(WorkerCommand._dumpHelp().utf8))
    }

    /// The flags of all commands, in order.
    var flags: [String] {
        func all(_ command: Command) -> [String] { command.flags + command.children.flatMap(all) }
        return Set(all(command) + ["--help", "--version"]).sorted()
    }

    /// The commands that have a flag, each with its path: `worker cache gc`.
    func commands(with flag: String) -> [String] { paths { $0.option(flag) != nil } }

    /// The commands of this name, each with its path.
    func commands(named name: String) -> [String] { paths { $0.commandName == name } }

    private func paths(where isMeant: (Command) -> Bool) -> [String] {
        func walk(_ command: Command, _ path: String) -> [String] {
            command.children.flatMap { child in
                let path = "\(path) \(child.commandName)"
                return (child.children.isEmpty && isMeant(child) ? [path] : []) + walk(child, path)
            }
        }
        return walk(command, command.commandName)
    }
}
