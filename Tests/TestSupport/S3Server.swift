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
    private let program: ScriptedServer

    public static let missing = "There is no 'radosgw', and scripts/bootstrap could not download it."

    private static let package = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent()

    private static let folder =
        getenv("RADOSGW_ROOT").map { String(cString: $0) } ?? package.appending(".build/radosgw").string

    public static var isAvailable: Bool {
        ChildProcess.find("radosgw") != nil || access("\(folder)/root/usr/bin/radosgw", X_OK) == 0
    }

    public static var hasIPv6: Bool { text("/proc/net/if_inet6").contains("00000000000000000000000000000001 ") }

    /// One for all tests, and so a child of none of them: it takes seconds to start.
    public static let running = Task { try await S3Server() }

    private init() async throws {
        program = try await ScriptedServer("s3-server", [Self.folder])
        (endpoint, key, secret) = (program["endpoint"], program["key"], program["secret"])
    }

    private static func text(_ path: String) -> String {
        String(decoding: ProcessTable.contents(of: path) ?? [], as: UTF8.self)
    }
}
