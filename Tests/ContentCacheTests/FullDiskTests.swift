import ContentCache
import Core
import Glibc
import SystemPackage
import TestSupport
import Testing

/// A small disk of its own in memory; only root may mount one.
private func withSmallDisk(_ options: String, _ body: (FilePath) throws -> Void) throws {
    try withTemporaryDirectory { folder in
        let status = try ChildProcess.run("mount", ["-t", "tmpfs", "-o", options, "none", folder.string])
        guard status == 0 else {
            withKnownIssue("No disk can be mounted here, so a full one can't be tested.") {
                Issue.record("mount ended with \(status)")
            }
            return
        }
        defer { umount2(folder.string, 2) }  // MNT_DETACH, whatever is still open in it
        try body(folder)
    }
}

@Suite("A full disk", .timeLimit(.minutes(15)), .enabled(if: getuid() == 0, "only root can mount a small disk"))
struct FullDiskTests {
    @Test func `A new file without space on the disk fails with diskFull`() throws {
        try withSmallDisk("size=4m,nr_inodes=300") { folder in
            let cache = try ContentCache(directory: folder)
            var files: [BlobFile] = []
            let error = CacheError.of { for _ in 0..<300 { files.append(try cache.makeFile()) } }
            #expect(error?.code == .diskFull)
            #expect(error?.message == "No new file can be made in \(cache.directory): No space left on device.")
            files = []
            try cache.add("there is room again")
        }
    }

    @Test func `A cache without space for its folders can't be created`() throws {
        try withSmallDisk("size=4m,nr_inodes=100") { folder in
            let error = CacheError.of { _ = try ContentCache(directory: folder) }
            #expect(error?.code == .cannotCreate)
            #expect(error?.message.hasSuffix("No space left on device.") == true)
        }
    }

    @Test func `A body that a full disk has cut is never published`() throws {
        try withSmallDisk("size=1m") { folder in
            let cache = try ContentCache(directory: folder)
            let file = try cache.makeFile()
            #expect(throws: Errno.noSpace) {
                for _ in 0..<40 { try file.descriptor.writeAll([UInt8](repeating: 7, count: 1 << 16)) }
            }
            let blob = PendingBlob(file: file, hash: BlobHash(of: [7]), size: 40 << 16)
            #expect(cache.publish([blob]).errors[0]?.code == .damaged)
            #expect(try cache.freeBytes() < 1 << 16)
            #expect(try cache.files().blobs == [])
        }
    }
}
