import ArgumentParser
import Glibc
import PrefetchWorker

/// Runs the program `worker-helper`, wherever it was installed. It is not for people.
struct HelperCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "helper", abstract: "Transforms images for a worker; started by it.", shouldDisplay: false)

    @Argument(
        parsing: .captureForPassthrough, help: "--describe, --describe --formats or --test-sandbox, for a report.")
    var words: [String] = []

    func run() throws {
        let program = HelperConfiguration.installed(count: 1).executable
        var arguments = ([program] + words).map { strdup($0) } + [nil]
        execv(program, &arguments)
        Terminal.error("worker: \(program) can't be started: \(String(cString: strerror(errno)))")
        throw ExitCode.unavailable
    }
}
