import Core
import Jobs

/// Explains words of the command line that no command knows, and suggests the likely ones.
///
/// The argument parser only names the word. This is asked after it has refused the command line, and for `help`, which it
/// never refuses.
struct CommandLineAdvice {
    private let catalogue: CommandCatalogue
    private let words: [String]
    private var path: String
    private var command: CommandCatalogue.Command

    /// - Returns: nil to leave it to the parser's message.
    static func sentence(for words: [String]) -> String? {
        guard let catalogue = CommandCatalogue.make() else { return nil }
        var advice = CommandLineAdvice(catalogue, words)
        return advice.find().map(Terminal.safe)
    }

    private init(_ catalogue: CommandCatalogue, _ words: [String]) {
        self.catalogue = catalogue
        self.words = words
        command = catalogue.command
        path = catalogue.command.commandName
    }

    private mutating func find() -> String? {
        for (index, word) in words.enumerated() {
            if command.children.isEmpty { return leafMistake(Array(words[index...])) }
            if word.hasPrefix("-") { return earlyFlag(word, words.dropFirst(index + 1)) }
            if word == "help" { continue }
            guard let child = command.child(word) else { return unknownCommand(word) }
            command = child
            path += " \(word)"
        }
        return command.children.isEmpty ? leafMistake([]) : nil
    }

    // MARK: - Commands

    private func unknownCommand(_ word: String) -> String? {
        if let habit = Self.habits["\(path) \(word)"] { return habit }
        let names = command.children.map(\.commandName)
        let unknown = "Unknown command '\(path) \(word)'."
        if word.contains("://") { return "\(unknown) To put URLs into the queue: worker enqueue URL" }
        if let near = NearestWord.find(word, among: names) { return "\(unknown) Did you mean '\(path) \(near)'?" }
        let elsewhere = catalogue.commands(named: word)
        let here = "The commands are: \(names.joined(separator: ", "))."
        if !elsewhere.isEmpty {
            // Another command of this group may be meant.
            return "\(unknown) Did you mean \(Self.list(elsewhere))?\(path == "worker" ? "" : " " + here)"
        }
        return "\(unknown) \(here)"
    }

    /// What other programs call their commands.
    private static let habits = [
        "worker version": "Unknown command 'worker version'. It is a flag: worker --version",
        "worker db restore": """
        Unknown command 'worker db restore'. To go back to a copy: stop all workers, remove worker.db-wal and \
        worker.db-shm, and put the copy in the place of worker.db. See: worker db backup --help
        """,
        "worker blacklist add": """
        Unknown command 'worker blacklist add'. A URL is listed when it fails for good; to list one by hand, insert it \
        into blacklist_entries, as docs/reference/sql.md shows.
        """,
        "worker delete": "Unknown command 'worker delete'. Did you mean 'worker cancel' or 'worker prune'?",
        "worker start": "Unknown command 'worker start'. Did you mean 'worker run'?",
        "worker add": "Unknown command 'worker add'. Did you mean 'worker enqueue'?",
        "worker list": "Unknown command 'worker list'. Did you mean 'worker status'?",
    ]

    /// A flag before the command that it belongs to.
    private func earlyFlag(_ word: String, _ rest: ArraySlice<String>) -> String? {
        let flag = String(word.prefix { $0 != "=" })
        guard command.option(flag) == nil, !Self.isOfParser(flag) else { return nil }
        let owners = catalogue.commands(with: flag)
        let written = ([word] + rest.prefix(1)).joined(separator: " ")
        guard !owners.isEmpty else {
            let question = NearestWord.question(flag, among: catalogue.flags)
            return "Unknown option '\(flag)'.\(question) Options follow a command: worker COMMAND [OPTIONS]"
        }
        let meant = owners.contains("worker run") ? "worker run" : owners[0]
        if owners.count < 6 { return "The option \(flag) belongs to '\(meant)'. Write: \(meant) \(written)" }
        return "The option \(flag) follows a command, such as: \(meant) \(written)"
    }

    private static func isOfParser(_ flag: String) -> Bool {
        ["-h", "--help", "--version", "--help-hidden", "--generate-completion-script", "--experimental-dump-help"]
            .contains(flag)
    }

    // MARK: - Options and arguments of one command

    private func leafMistake(_ words: [String]) -> String? {
        var positionals = 0
        var given: Set<String> = []
        let takesAny = command.positionals.contains(where: \.isRepeating)
        var index = 0
        while index < words.count {
            let word = words[index]
            defer { index += 1 }
            if word == "--" { return nil }
            guard word.hasPrefix("-"), word.count > 1 else {
                positionals += 1
                if !takesAny, positionals > command.positionals.count { return surplus(word, after: words[..<index]) }
                continue
            }
            let flag = String(word.prefix { $0 != "=" })
            if Self.isOfParser(flag) { return nil }
            guard let option = command.option(flag) else { return unknownOption(flag) }
            given.formUnion(option.spellings)
            if option.kind == .option, !word.contains("=") {
                index += 1
                if index == words.count { return "The option \(flag) needs a value: \(flag) \(Self.name(option))" }
            }
        }
        return missing(after: positionals, given)
    }

    /// - Parameters:
    ///   - count: of the arguments that are there.
    ///   - given: the spellings of the options that are there.
    private func missing(after count: Int, _ given: Set<String>) -> String? {
        let options = command.options.filter { !$0.isOptional && given.isDisjoint(with: $0.spellings) }
        guard let needed = command.positionals.dropFirst(count).first(where: { !$0.isOptional }) ?? options.first else {
            return nil
        }
        let meaning = needed.abstract.map { ": \($0)" } ?? "."
        let flag = needed.spellings.first.map { "\($0) " } ?? ""
        return "'\(path)' needs \(flag)\(Self.name(needed))\(meaning) See: \(path) --help"
    }

    private static func name(_ argument: CommandCatalogue.Argument) -> String { "<\(argument.valueName ?? "value")>" }

    /// The sentence of a mistake that the parser or a command tells, with the page that says more.
    static func sentence(of message: String, for words: [String]) -> String {
        var path = "worker"
        if let catalogue = CommandCatalogue.make() {
            var command = catalogue.command
            for word in words {
                guard let child = command.child(word) else { break }
                command = child
                path += " \(word)"
            }
        }
        let lines = message.split(whereSeparator: \.isNewline).joined(separator: " ")
        return Terminal.safe("\(lines)\(lines.last.map { ".?!".contains($0) } ?? true ? "" : ".") See: \(path) --help")
    }

    private func unknownOption(_ flag: String) -> String {
        let unknown = "Unknown option '\(flag)'."
        if flag.count == 2 {
            let long = command.flags.filter { $0.hasPrefix("--\(flag.dropFirst())") }.prefix(4)
            return long.isEmpty
                ? "\(unknown) See: \(path) --help" : "\(unknown) Did you mean \(Self.list(Array(long)))?"
        }
        let name = String(flag.trimmingPrefix("--"))
        if command.positionals.contains(where: { $0.valueName == name || $0.valueName == name + "s" }) {
            return "\(unknown) Write its value alone: \(path) \(name.uppercased())"
        }
        if let near = NearestWord.find(flag, among: command.flags) { return "\(unknown) Did you mean '\(near)'?" }
        if command.option("--option") != nil {
            let options = JobOptions.names.map(\.name)
            if let near = options.first(where: { $0 == name }) ?? options.first(where: { $0.hasPrefix(name) })
                ?? NearestWord.find(name, among: options)
            {
                return "\(unknown) It is an option of the job: --option \(near)"
            }
        }
        if command.option("--format") != nil, ["csv", "jsonl", "json", "tsv", "text"].contains(name) {
            return "\(unknown) It is a format: --format \(name)"
        }
        let owners = catalogue.commands(with: flag)
        if !owners.isEmpty { return "\(unknown) It belongs to \(Self.list(Array(owners.prefix(3))))." }
        return "\(unknown) See: \(path) --help"
    }

    /// One word more than the command takes.
    private func surplus(_ word: String, after before: ArraySlice<String>) -> String? {
        // The unit of a value, as in --max-body 10 MB.
        if before.count > 1, let option = before.dropLast().last, option.hasPrefix("--"), let number = before.last,
            Double(number) != nil, !word.isEmpty, word.allSatisfy(\.isLetter)
        {
            return "Write the value of \(option) as one word: \(option) \(number)\(word)"
        }
        if path == "worker run" {
            return """
                'worker run' takes no argument '\(word)': it works on all jobs. Put URLs into the queue first: worker enqueue \
                URL
                """
        }
        let most = command.positionals.count
        let takes = most == 0 ? "takes no arguments" : most == 1 ? "takes one argument" : "takes \(most) arguments"
        return "'\(path)' \(takes); '\(word)' is one too many. See: \(path) --help"
    }

    private static func list(_ names: [String]) -> String {
        let quoted = names.map { "'\($0)'" }
        return quoted.count < 2
            ? quoted.joined() : quoted.dropLast().joined(separator: ", ") + " or " + (quoted.last ?? "")
    }
}
