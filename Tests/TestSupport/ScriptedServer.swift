import Glibc
import SystemPackage

/// A server that a script of this project starts. The script prints lines as `name=value` once the server answers, and
/// ends with the process that runs the tests.
public final class ScriptedServer: Sendable {
    private let program: RunningProgram
    private let values: [String: String]

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    private static let package = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent()

    /// Starts `scripts/NAME`, and waits for at most two minutes.
    init(_ script: String, _ arguments: [String] = []) async throws {
        let template = "\(Self.variable("TMPDIR") ?? "/tmp")/\(script)-output-XXXXXX"
        var name = Array(template.utf8CString)
        let output = name.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
        guard let output else { throw Errno(rawValue: errno) }
        defer {
            for file in ["out", "errors"] { unlink("\(output)/\(file)") }
            rmdir(output)
        }
        let known = ["PATH", "HOME", "TMPDIR"].compactMap { name in Self.variable(name).map { (name, $0) } }
        program = try RunningProgram(
            Self.package.appending("scripts").appending(script).string, arguments,
            files: ChildProcess.Files(output: "\(output)/out", errors: "\(output)/errors"),
            environment: Dictionary(uniqueKeysWithValues: known))
        for _ in 0..<2_400 {
            let text = Self.text("\(output)/out")
            let lines = text.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
            if text.hasSuffix("\n"), !lines.isEmpty, lines.allSatisfy({ $0.count == 2 }) {
                values = Dictionary(uniqueKeysWithValues: lines.map { ($0[0], $0[1]) })
                return
            }
            guard program.exit == nil else { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        program.send(SIGTERM)
        throw Failure(description: "scripts/\(script) does not start: \(Self.text("\(output)/errors"))")
    }

    /// Ends the server. It is not waited for.
    func stop() { program.send(SIGTERM) }

    /// A value that the script has printed; empty if it has not.
    subscript(_ name: String) -> String { values[name] ?? "" }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    private static func text(_ path: String) -> String {
        String(decoding: ProcessTable.contents(of: path) ?? [], as: UTF8.self)
    }
}
