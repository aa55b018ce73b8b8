import Glibc
import SystemPackage

/// Ceph's gateway, started by `scripts/s3-server`. It ends with the process that runs the tests.
///
/// It is taken from the folder that the environment variable `RADOSGW_ROOT` names, else from `.build/radosgw`, as
/// `scripts/s3-server --fetch FOLDER` fills them, or from where Debian's package `radosgw` installs it.
public final class S3Server: Sendable {
    public let endpoint: String
    public let key: String
    public let secret: String
    private let program: RunningProgram

    public static let missing = "There is no 'radosgw', and scripts/bootstrap could not download it."

    private static let package = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent()

    private static let folder =
        getenv("RADOSGW_ROOT").map { String(cString: $0) } ?? package.appending(".build/radosgw").string

    public static var isAvailable: Bool {
        ChildProcess.find("radosgw") != nil || access("\(folder)/root/usr/bin/radosgw", X_OK) == 0
    }

    public static var hasIPv6: Bool { text("/proc/net/if_inet6").contains("00000000000000000000000000000001 ") }

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// One for all tests, and so a child of none of them: it takes seconds to start.
    public static let running = Task { try await S3Server() }

    private init() async throws {
        let template = "\(Self.variable("TMPDIR") ?? "/tmp")/s3-server-output-XXXXXX"
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
            Self.package.appending("scripts").appending("s3-server").string, [Self.folder],
            files: ChildProcess.Files(output: "\(output)/out", errors: "\(output)/errors"),
            environment: Dictionary(uniqueKeysWithValues: known))
        for _ in 0..<2_400 {
            let text = Self.text("\(output)/out")
            let values = text.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
            if text.hasSuffix("\n"), values.count == 3, values.allSatisfy({ $0.count == 2 }) {
                (endpoint, key, secret) = (values[0][1], values[1][1], values[2][1])
                return
            }
            guard program.exit == nil else { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        program.send(SIGTERM)
        throw Failure(description: "scripts/s3-server does not start: \(Self.text("\(output)/errors"))")
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    private static func text(_ path: String) -> String {
        String(decoding: ProcessTable.contents(of: path) ?? [], as: UTF8.self)
    }
}
