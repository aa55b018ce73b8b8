import Core
import SystemPackage
import Testing

@testable import ContentCache

@Suite("Names of blobs", .timeLimit(.minutes(15)))
struct BlobHashTests {
    /// FIPS 180-2, appendix B, and the empty message.
    static let vectors: [(bytes: [UInt8], hex: String)] = [
        ([], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (Array("abc".utf8), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
        (
            [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        ),
    ]

    @Test(arguments: vectors.indices)
    func `The hash is SHA-256, of bytes in memory and of a file`(_ index: Int) throws {
        let (bytes, hex) = Self.vectors[index]
        #expect(BlobHash(of: bytes).hex == hex)
        try withCache { cache in
            let blob = try cache.pending(bytes)
            #expect(blob.hash.hex == hex)
            #expect(blob.size == Int64(bytes.count))
        }
    }

    @Test func `Reading a file's hash doesn't move its offset`() throws {
        try withCache { cache in
            let file = try cache.makeFile()
            try file.descriptor.writeAll("abcdef".utf8)
            try file.descriptor.seek(offset: 2, from: .start)
            _ = try PendingBlob(reading: file)
            #expect(try file.descriptor.seek(offset: 0, from: .current) == 2)
        }
    }

    static let hex = String(repeating: "0123456789abcdef", count: 4)
    static let short = String(hex.dropLast())
    static let wrong: [String] = [
        "", "a", short, "\(hex)0", hex.uppercased(), "\(short)g", "\(short)\0", "\(short)\n", " \(short)", "\(short)٣",
        "../../../../../../../../../../../../../../../../../../../etc/passwd", "/etc/passwd",
        String(repeating: "../", count: 21), String(repeating: "/", count: 64), String(repeating: ".", count: 64),
        String(repeating: "é", count: 32), String(repeating: "０", count: 64),
    ]

    @Test(arguments: wrong)
    func `Only sixty-four lowercase hexadecimal digits are a hash`(_ text: String) {
        #expect(BlobHash(text) == nil)
    }

    @Test func `A blob's shard is the first two digits of its hash`() throws {
        let hash = try #require(BlobHash(Self.hex))
        try withCache { cache in
            #expect(cache.path(of: hash) == cache.directory.appending("blobs/sha256/01/\(Self.hex)"))
        }
        #expect("\(hash)" == Self.hex)
    }
}
