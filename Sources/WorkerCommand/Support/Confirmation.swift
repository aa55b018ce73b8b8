import ArgumentParser
import Glibc

/// The options of commands that remove what cannot be brought back.
struct Confirmation: ParsableArguments {
    @Flag(help: "Do it without asking; needed where there is no terminal, as in cron.") var yes = false
    @Flag(help: "Only say what would be done.") var dryRun = false

    /// Asks on a terminal, unless `--yes` answers.
    ///
    /// - Parameter plan: what would be done, as a sentence.
    /// - Returns: whether to do it.
    /// - Throws: `usage` if there is no terminal to ask on.
    func allows(_ plan: String) throws -> Bool {
        if dryRun {
            Terminal.print("\(plan) Nothing was changed.")
            return false
        }
        if yes { return true }
        guard isatty(STDIN_FILENO) == 1, Terminal.errorIsTerminal else {
            throw SettingsError(
                "\(plan) There is no terminal to ask on: add --yes to do it, or --dry-run to only show it.")
        }
        Terminal.errorRaw("\(plan) Go on? [y/N] ")
        if let answer = readLine()?.lowercased(), ["y", "yes"].contains(answer) { return true }
        Terminal.error("Nothing was changed.")
        throw ExitCode.notFound
    }
}
