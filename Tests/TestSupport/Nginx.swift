internal import Core
import Glibc
public import SystemPackage

/// The real nginx, serving a folder over http and https on loopback ports, with a certificate of its own making.
public final class Nginx: Sendable {
    public let httpPort: UInt16
    public let httpsPort: UInt16
    /// The authority that signed the certificate for `127.0.0.1` and `localhost`.
    public let caFile: FilePath
    private let process: pid_t

    /// Both nginx and openssl can be run.
    public static var isAvailable: Bool {
        ChildProcess.find("nginx") != nil && ChildProcess.find("openssl") != nil
    }

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// - Parameters:
    ///   - scratch: an empty directory for certificates and nginx's own files.
    ///   - locations: what else the server is told.
    public init(serving folder: FilePath, scratch: FilePath, locations: String = "") throws {
        httpPort = try LoopbackOrigin.unusedPort()
        httpsPort = try LoopbackOrigin.unusedPort()
        caFile = scratch.appending("ca.pem")
        try Self.makeCertificate(in: scratch)
        let configuration = Self.configuration(
            folder: folder, scratch: scratch, http: httpPort, https: httpsPort, locations)
        try Self.write(configuration, to: scratch.appending("nginx.conf"))
        let arguments = ["-p", scratch.string, "-e", "error.log", "-c", scratch.appending("nginx.conf").string]
        process = try ChildProcess.start("nginx", arguments)
        try Self.waitUntilListening(httpsPort)
    }

    deinit { stop() }

    public func url(_ path: String) -> String { "http://127.0.0.1:\(httpPort)\(path)" }

    public func secureURL(_ path: String) -> String { "https://127.0.0.1:\(httpsPort)\(path)" }

    /// Ends this nginx and no other. Further calls do nothing.
    public func stop() {
        // Waiting is what tells a process of ours from a later one with the same number.
        guard waitpid(process, nil, WNOHANG) == 0 else { return }
        // Without a master process nginx may forget a signal that comes just before it waits for connections.
        repeat {
            kill(process, SIGTERM)
            usleep(20_000)
        } while waitpid(process, nil, WNOHANG) == 0
    }

    private static func configuration(
        folder: FilePath, scratch: FilePath, http: UInt16, https: UInt16, _ locations: String,
    ) -> String {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(scratch)/\($0);" }.joined(separator: " ")
        return """
            daemon off; master_process off; pid \(scratch)/nginx.pid;
            events { worker_connections 256; }
            http {
                access_log off; \(temporary)
                server {
                    listen 127.0.0.1:\(http); listen 127.0.0.1:\(https) ssl http2;
                    ssl_certificate \(scratch)/server.pem; ssl_certificate_key \(scratch)/server.key;
                    root \(folder); keepalive_requests 100000;
                    \(locations)
                }
            }
            """
    }

    private static func makeCertificate(in scratch: FilePath) throws {
        try write("subjectAltName=IP:127.0.0.1,DNS:localhost\n", to: scratch.appending("san"))
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        func file(_ name: String) -> String { scratch.appending(name).string }
        let commands = [
            ["req", "-x509", "-days", "2", "-subj", "/CN=Test CA", "-keyout", file("ca.key"), "-out", file("ca.pem")]
                + key,
            ["req", "-subj", "/CN=127.0.0.1", "-keyout", file("server.key"), "-out", file("server.csr")] + key,
            [
                "x509", "-req", "-days", "2", "-in", file("server.csr"), "-CA", file("ca.pem"), "-CAkey",
                file("ca.key"),
                "-set_serial", "1", "-extfile", file("san"), "-out", file("server.pem"),
            ],
        ]
        for arguments in commands {
            let status = try ChildProcess.run("openssl", arguments)
            guard status == 0 else { throw Failure(description: "openssl \(arguments[0]) ended with \(status)") }
        }
    }

    private static func write(_ text: String, to path: FilePath) throws {
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: [.ownerReadWrite],
        )
        try file.closeAfter { _ = try file.writeAll(text.utf8) }
    }

    private static func waitUntilListening(_ port: UInt16) throws {
        for _ in 0..<250 {
            if LoopbackSocket.canConnect(to: port) { return }
            usleep(20_000)
        }
        throw Failure(description: "nginx does not listen")
    }
}

extension LoopbackSocket {
    static func canConnect(to port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { Glibc.close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return withUnsafeBytes(of: &address) { bytes in
            guard let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return false }
            return connect(descriptor, pointer, socklen_t(bytes.count)) == 0
        }
    }
}
