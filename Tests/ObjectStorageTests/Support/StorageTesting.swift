import Core
import Glibc
import Hashing
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ObjectStorage

let testCredentials = CredentialSettings(
    environment: [
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "verySecretKey",
    ].value)

extension [String: String] {
    /// As an environment.
    func value(_ name: String) -> String? { self[name] }
}

/// A bucket at a loopback origin, with short pauses.
func bucket(
    at origin: LoopbackOrigin, _ text: String = "s3://bucket/p", credentials: CredentialSettings = testCredentials,
    configure: (inout BucketOptions) -> Void = { _ in },
) throws -> Bucket {
    var options = BucketOptions()
    (options.tries, options.shortestPause, options.longestPause) = (4, 1, 5)
    configure(&options)
    let server = BucketLocation.Server(endpoint: origin.url(""))
    return Bucket(try BucketLocation(text, server: server), credentials: credentials, options: options)
}

/// The error of a call; nil if it throws none.
func storageError(_ body: () async throws -> Void) async -> StorageError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? StorageError
    }
}

/// An error as S3 answers it.
func failing(
    _ status: Int, _ code: String, _ message: String = "", more: String = "",
    headers: [(name: String, value: String)] = [],
) -> LoopbackReply {
    let text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        + "<Error><Code>\(code)</Code><Message>\(message)</Message>\(more)<RequestId>1</RequestId></Error>"
    return .status(status, headers: headers, body: Array(text.utf8))
}

extension BlobHash {
    init(of bytes: [UInt8]) { self.init(digest: SHA256.digest(of: bytes)) }
}

/// Lends an open file with these bytes in a folder of its own.
func withFile<R>(_ bytes: [UInt8] = [], _ body: (FileDescriptor) async throws -> R) async throws -> R {
    try await withTemporaryDirectory { folder in
        let file = try FileDescriptor.open(
            folder.appending("file"), .readWrite, options: [.create, .closeOnExec], permissions: [.ownerReadWrite])
        do {
            try file.writeAll(toAbsoluteOffset: 0, bytes)
            let result = try await body(file)
            try file.close()
            return result
        } catch {
            // Best effort: the first error says more.
            try? file.close()
            throw error
        }
    }
}

/// All of a file's bytes, from its beginning.
func contents(of file: FileDescriptor) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while case let count = try buffer.withUnsafeMutableBytes({
        try file.read(fromAbsoluteOffset: Int64(bytes.count), into: $0)
    }), count > 0 {
        bytes += buffer[..<count]
    }
    return bytes
}

func write(_ text: String, to path: FilePath) throws {
    let file = try FileDescriptor.open(
        path, .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: [.ownerReadWrite])
    try file.closeAfter { _ = try file.writeAll(text.utf8) }
}

/// Holds an origin's threads back until a test lets them go on.
final class Barrier: Sendable {
    private let isOpen = Mutex(false)

    func open() { isOpen.withLock { $0 = true } }

    /// Blocks the thread, a minute at most.
    func pass() {
        for _ in 0..<12_000 where !isOpen.withLock({ $0 }) { usleep(5_000) }
    }
}

final class Counter: Sendable {
    private let count = Mutex(0)

    var value: Int { count.withLock { $0 } }

    func add() { count.withLock { $0 += 1 } }
}

/// No two bytes in a row are alike, and no two numbers give the same.
func noise(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
}
