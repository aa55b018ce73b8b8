internal import Core
import FoundationEssentials
import Glibc
public import SystemPackage

/// A server of HTTP/1.1 and HTTP/2 over TLS that breaks in every way it is asked to, by the path of the request or by the
/// port. Python and its library for HTTP/2's frames do the work: faults need frames that no well-behaved server sends.
///
/// Certificates are made on the fly: a good one, an expired one, one for another host, and one without a signature of an authority.
public final class SecureOrigin: Sendable {
    /// What a port is like.
    public enum Port: String, Sendable, CaseIterable {
        case good, expired, wrong, own
        /// HTTP/2 only.
        case h2
        /// The handshake: closed at once, answered with nonsense, cut in the middle, never answered, an old protocol.
        case closed, nonsense, cut, silent, old
    }

    /// The authority that signed the good, the expired and the other host's certificate.
    public let caFile: FilePath
    private let ports: [String: UInt16]
    private let process: pid_t

    /// Debian's Python has the library for frames, and not any other Python that may come first on the path.
    private static let python = "/usr/bin/python3"

    /// Python, its HTTP/2 library and openssl can be run.
    public static let isAvailable: Bool = {
        let imports = try? ChildProcess.run(python, ["-c", "import h2.connection, ssl"])
        return imports == 0 && ChildProcess.find("openssl") != nil
    }()

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// - Parameter scratch: an empty directory for certificates.
    public init(scratch: FilePath) throws {
        caFile = scratch.appending("ca.pem")
        try Self.makeCertificates(in: scratch)
        let output = scratch.appending("ports").string
        let files = ChildProcess.Files(output: output, errors: scratch.appending("errors").string)
        process = try ChildProcess.start(Self.python, ["-c", Self.script, scratch.string], files: files)
        for _ in 0..<1_000 {
            if let text = ProcessTable.contents(of: output), text.last == UInt8(ascii: "\n"),
                let ports = try? JSONDecoder().decode([String: UInt16].self, from: Data(text))
            {
                self.ports = ports
                return
            }
            usleep(20_000)
        }
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
        throw Failure(description: "The origin over TLS does not start.")
    }

    deinit { stop() }

    public func url(_ port: Port, _ path: String = "/ok", host: String = "127.0.0.1") -> String {
        "https://\(host):\(ports[port.rawValue] ?? 0)\(path)"
    }

    /// Ends this process and no other. Further calls do nothing.
    public func stop() {
        guard waitpid(process, nil, WNOHANG) == 0 else { return }
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
    }

    private static func makeCertificates(in scratch: FilePath) throws {
        func file(_ name: String) -> String { scratch.appending(name).string }
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        try openssl(
            ["req", "-x509", "-days", "2", "-subj", "/CN=Test CA", "-keyout", file("ca.key"), "-out", file("ca.pem")]
                + key)
        try openssl(
            [
                "req", "-x509", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                "-keyout", file("own.key"), "-out", file("own.pem"),
            ] + key)
        for (name, subject, days) in [
            ("good", "IP:127.0.0.1,DNS:localhost", "2"), ("expired", "IP:127.0.0.1", "-1"),
            ("wrong", "DNS:elsewhere.example", "2"),
        ] {
            try write("subjectAltName=\(subject)\n", to: scratch.appending("san"))
            try openssl(["req", "-subj", "/CN=t", "-keyout", file("\(name).key"), "-out", file("csr")] + key)
            let request = [
                "x509", "-req", "-in", file("csr"), "-CA", file("ca.pem"), "-CAkey", file("ca.key"), "-set_serial", "7",
                "-extfile", file("san"), "-out", file("\(name).pem"),
            ]
            // OpenSSL 3.4 and later take no negative days, but dates, which older releases don't know.
            let dates = ["-not_before", "20200101000000Z", "-not_after", "20200102000000Z"]
            if name == "expired", try ChildProcess.run("openssl", request + dates) == 0 { continue }
            try openssl(request + ["-days", days])
        }
    }

    private static func openssl(_ arguments: [String]) throws {
        let status = try ChildProcess.run("openssl", arguments)
        guard status == 0 else { throw Failure(description: "openssl \(arguments[0]) ended with \(status)") }
    }

    private static func write(_ text: String, to path: FilePath) throws {
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: [.ownerReadWrite])
        try file.closeAfter { _ = try file.writeAll(text.utf8) }
    }
}
