import Glibc
import SystemPackage

/// An S3 server, started by a script: Ceph's gateway by `scripts/s3-server`, or SeaweedFS by `scripts/seaweedfs-server`.
/// It ends with the process that runs the tests.
///
/// The gateway is taken from the folder that the environment variable `RADOSGW_ROOT` names, else from `.build/radosgw`, as
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
    public static let running = Task { try await S3Server("s3-server", folder) }

    public static let missingSeaweedFS = "There is no SeaweedFS ('weed'), and scripts/bootstrap could not download it."

    private static let seaweedFolder = package.appending(".build/seaweedfs").string

    public static var hasSeaweedFS: Bool {
        ChildProcess.find("weed") != nil || access("\(seaweedFolder)/weed", X_OK) == 0
    }

    /// The same.
    public static let runningSeaweedFS = Task { try await S3Server("seaweedfs-server", seaweedFolder) }

    private init(_ script: String, _ folder: String) async throws {
        program = try await ScriptedServer(script, [folder])
        (endpoint, key, secret) = (program["endpoint"], program["key"], program["secret"])
    }

    private static func text(_ path: String) -> String {
        String(decoding: ProcessTable.contents(of: path) ?? [], as: UTF8.self)
    }
}
