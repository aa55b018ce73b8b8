import ArgumentParser
import PrefetchWorker

/// The worker starts it once for each core. It is not for people.
struct HelperCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "helper", abstract: "Transforms images for a worker; started by it.", shouldDisplay: false)

    @Flag(help: "Only try the calls that a helper's sandbox forbids, and print a report.")
    var testSandbox = false

    func run() throws {
        throw ExitCode(testSandbox ? HelperMain.testSandbox() : HelperMain.run())
    }
}
