import Core
import Glibc
import Hashing
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ObjectStorage

/// The requests of a bucket, and the results and errors that come from the answers.
@Suite("Requests", .timeLimit(.minutes(15)))
struct RequestTests {
    @Test func `An upload sends the file's first bytes once, with its hash and without Expect`() async throws {
        let origin = try LoopbackOrigin { _ in .ok([]) }
        let bucket = try bucket(at: origin) {
            ($0.encryption, $0.encryptionKey, $0.storageClass) = ("aws:kms", "key-1", "STANDARD_IA")
            $0.agent = "Test/1"
        }
        let bytes = noise(3_000_000)
        let hash = BlobHash(of: bytes)
        try await withFile(bytes + [1, 2, 3]) { file in
            try file.seek(offset: 99, from: .start)
            try await bucket.put("a b/ü", file, size: 3_000_000, hash: hash, type: "image/png")
            let offset = try file.seek(offset: 0, from: .current)
            #expect(offset == 99)
        }
        let request = try #require(origin.requests.first)
        #expect(origin.requests.count == 1)
        #expect(request.method == "PUT")
        #expect(request.path == "/bucket/p/a%20b/%C3%BC")
        #expect(request.body == bytes)
        #expect(request.header("content-length") == "3000000")
        #expect(request.header("expect") == nil)
        #expect(request.header("transfer-encoding") == nil)
        #expect(request.header("content-type") == "image/png")
        #expect(request.header("x-amz-content-sha256") == hash.hex)
        #expect(request.header("x-amz-checksum-sha256") == Bucket.checksum(hash))
        #expect(request.header("x-amz-server-side-encryption") == "aws:kms")
        #expect(request.header("x-amz-server-side-encryption-aws-kms-key-id") == "key-1")
        #expect(request.header("x-amz-storage-class") == "STANDARD_IA")
        #expect(request.header("user-agent") == "Test/1")
        #expect(request.header("host") == "127.0.0.1:\(origin.port)")
        #expect(request.header("authorization")?.contains("Credential=AKIDEXAMPLE/") == true)
    }

    @Test func `A checksum is the digest in Base64`() throws {
        #expect(Bucket.checksum(BlobHash(of: [])) == "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
    }

    @Test func `Each try of an upload sends all bytes`() async throws {
        let origin = try LoopbackOrigin(script: ["/bucket/p/a": [.status(503), .noReply, .ok([])]])
        let bucket = try bucket(at: origin)
        let bytes = noise(500_000)
        try await withFile(bytes) { file in
            try await bucket.put("a", file, size: 500_000, hash: BlobHash(of: bytes))
        }
        #expect(origin.requests.map(\.body) == [bytes, bytes, bytes])
    }

    @Test func `A closed kept connection costs one try at most`() async throws {
        let turn = Mutex(0)
        let origin = try LoopbackOrigin { _ in
            // The answer says nothing of the end, and the connection ends with it.
            turn.withLock { turn in
                turn += 1
                return turn % 2 == 1 ? .raw("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") : .ok([])
            }
        }
        let bucket = try bucket(at: origin) { $0.tries = 2 }
        let bytes = noise(200_000)
        try await withFile(bytes) { file in
            for _ in 0..<10 { try await bucket.put("a", file, size: 200_000, hash: BlobHash(of: bytes)) }
        }
        #expect(origin.requests.allSatisfy { $0.body == bytes })
    }

    @Test func `A file shorter than the given size ends the upload without a retry`() async throws {
        let origin = try LoopbackOrigin { _ in .ok([]) }
        let bucket = try bucket(at: origin)
        try await withFile(noise(1_000)) { file in
            let error = await storageError {
                try await bucket.put("a", file, size: 2_000, hash: BlobHash(of: noise(1_000)))
            }
            #expect(error?.code == .file)
            let closed = FileDescriptor(rawValue: 987)
            let other = await storageError {
                try await bucket.put("a", closed, size: 10, hash: BlobHash(of: []))
            }
            #expect(other?.code == .file)
            #expect(other?.errno == .badFileDescriptor)
        }
        #expect(origin.connectionCount <= 2)
    }

    @Test func `A full disk is reported with its errno`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(noise(5_000)) }
        let bucket = try bucket(at: origin)
        let full = try FileDescriptor.open("/dev/full", .writeOnly, options: .closeOnExec)
        try await full.closeAfterAsync { full in
            let error = await storageError { _ = try await bucket.get("a", into: full, maxBytes: 5_000) }
            #expect(error?.code == .file)
            // The device can't be emptied; a disk that is full shows when it is written.
            #expect(error?.errno == .invalidArgument || error?.errno == .noSpace)
        }
    }

    @Test(arguments: [Int64.min, -1, (5 << 30) + 1, .max])
    func `An impossible size is refused before a request`(_ size: Int64) async throws {
        let origin = try LoopbackOrigin { _ in .ok([]) }
        let bucket = try bucket(at: origin)
        let error = await storageError {
            try await bucket.put("a", .standardInput, size: size, hash: BlobHash(of: []))
        }
        #expect(error?.code == .invalid)
        #expect(origin.requests.isEmpty)
    }

    @Test(arguments: ["text/plain\r\nx-amz-acl: public-read", "a\u{0}", "ä"])
    func `A type with a line break is refused`(_ type: String) async throws {
        let origin = try LoopbackOrigin { _ in .ok([]) }
        let bucket = try bucket(at: origin)
        let error = await storageError { _ = try await bucket.putIfAbsent("a", [], type: type) }
        #expect(error?.code == .invalid)
        #expect(origin.requests.isEmpty)
    }

    @Test func `An absent object is nil, and a missing bucket is an error`() async throws {
        let origin = try LoopbackOrigin {
            $0.path.hasSuffix("a") ? failing(404, "NoSuchKey") : failing(404, "NoSuchBucket")
        }
        let bucket = try bucket(at: origin)
        #expect(try await bucket.bytes(of: "a") == nil)
        try await withFile { file in
            let size = try await bucket.get("a", into: file, maxBytes: 10)
            #expect(size == nil)
        }
        #expect(await storageError { _ = try await bucket.bytes(of: "b") }?.code == .noBucket)
        let proxy = try LoopbackOrigin { _ in .status(404, body: Array("<html>Not found</html>".utf8)) }
        let other = try ObjectStorageTests.bucket(at: proxy)
        #expect(await storageError { _ = try await other.bytes(of: "a") }?.code == .refused)
        #expect(await storageError { _ = try await bucket.list() }?.code == .noBucket)
    }

    @Test func `An object's size and time are read from the headers`() async throws {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\nLast-Modified: Thu, 26 Nov 2026 09:30:00 GMT\r\n\r\n"
        let origin = try LoopbackOrigin { _ in .raw(head) }
        let bucket = try bucket(at: origin)
        let info = try await bucket.info(of: "a")
        #expect(
            info == Bucket.Info(key: "a", size: 5_000_000_000, modified: WallTime(milliseconds: 1_795_685_400_000)))
        #expect(origin.requests.first?.method == "HEAD")
    }

    @Test(arguments: ["", "Content-Length: 99999999999999999999\r\n", "Content-Length: -5\r\n"])
    func `An invalid length doesn't trap`(_ header: String) async throws {
        let origin = try LoopbackOrigin { _ in .raw("HTTP/1.1 200 OK\r\n\(header)\r\n") }
        let bucket = try bucket(at: origin) { $0.tries = 1 }
        #expect(await storageError { _ = try await bucket.info(of: "a") } != nil)
        #expect(await storageError { _ = try await bucket.bytes(of: "a") } != nil)
    }

    // MARK: - Unless there is one

    @Test func `A small object is stored only if it is absent`() async throws {
        let origin = try LoopbackOrigin(script: [
            "/bucket/p/new": [.ok([])], "/bucket/p/old": [failing(412, "PreconditionFailed")],
            "/bucket/p/race": [failing(409, "ConditionalRequestConflict"), failing(412, "PreconditionFailed")],
        ])
        let bucket = try bucket(at: origin)
        #expect(try await bucket.putIfAbsent("new", [1]))
        #expect(try await !bucket.putIfAbsent("old", [1]))
        #expect(try await !bucket.putIfAbsent("race", [1]))
        #expect(origin.requests.map(\.method) == ["PUT", "PUT", "PUT", "PUT"])
        #expect(origin.requests.allSatisfy { $0.header("if-none-match") == "*" })
    }

    @Test(arguments: [([UInt8](), false), ([1, 2, 3], true), ([1, 2, 4], false), ([1, 2, 3, 4], false)])
    func `After a lost answer, the object's bytes decide whether the store succeeded`(_ found: [UInt8], _ isOurs: Bool)
        async throws
    {
        let puts = Mutex(0)
        let origin = try LoopbackOrigin { request in
            guard request.method == "PUT" else { return .ok(found) }
            return puts.withLock { puts in
                puts += 1
                return puts == 1 ? .noReply : failing(412, "PreconditionFailed")
            }
        }
        let bucket = try bucket(at: origin)
        #expect(try await bucket.putIfAbsent("a", [1, 2, 3]) == isOurs)
    }
}

extension FileDescriptor {
    fileprivate func closeAfterAsync(_ body: (FileDescriptor) async -> Void) async throws {
        await body(self)
        try close()
    }
}
