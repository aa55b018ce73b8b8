import Glibc
import SystemPackage
import TestSupport
import Testing

/// A disk of a few megabytes, in memory; only root can mount one.
struct SmallDisk: Sendable {
    let path: String

    static func lend(_ body: (SmallDisk) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            let options = "size=16m,nr_inodes=4000"
            guard try ChildProcess.run("mount", ["-t", "tmpfs", "-o", options, "none", folder.string]) == 0 else {
                withKnownIssue("No disk can be mounted here, so a full one can't be tested.") {
                    Issue.record("mount failed")
                }
                return
            }
            defer { umount2(folder.string, 2) }  // MNT_DETACH, whatever is still open in it
            try await body(SmallDisk(path: folder.string))
        }
    }

    /// Bytes that can still be written to it.
    func free() throws -> Int {
        var info = statvfs()
        guard statvfs(path, &info) == 0 else { throw Errno(rawValue: errno) }
        return Int(info.f_bavail) * Int(info.f_frsize)
    }

    /// Moves a folder here, and leaves a link in its place; makes it if it isn't there.
    func hold(_ folder: String) throws {
        let target = path + "/" + (FilePath(folder).lastComponent?.string ?? "held")
        if access(folder, F_OK) == 0 {
            _ = try ChildProcess.run("mv", [folder, target])
        } else if mkdir(target, 0o755) != 0 {
            throw Errno(rawValue: errno)
        }
        guard symlink(target, folder) == 0 else { throw Errno(rawValue: errno) }
    }

    /// Moves it back, before the disk goes.
    func giveBack(_ folder: String) throws {
        let target = path + "/" + (FilePath(folder).lastComponent?.string ?? "held")
        guard unlink(folder) == 0 else { throw Errno(rawValue: errno) }
        _ = try ChildProcess.run("mv", [target, folder])
    }

    /// A file that leaves only so many bytes.
    func fill(leaving free: Int) throws {
        // Not for the programs of other tests: as long as one has it open, its room is not free.
        let file = try FileDescriptor.open(
            FilePath(filler), .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        let bytes = max(0, try self.free() - free)
        try file.closeAfter {
            let block = [UInt8](repeating: 1, count: 4_096)
            // A worker may take some of it meanwhile: then there is less to fill.
            do { for _ in 0..<(bytes / 4_096) { _ = try file.writeAll(block) } } catch Errno.noSpace {}
        }
    }

    func empty() { unlink(filler) }

    private var filler: String { path + "/filler" }

    /// Makes it read-only or writable again.
    ///
    /// - Returns: whether it could; a file that is open for writing keeps it from it.
    func mount(readOnly: Bool) throws -> Bool {
        try ChildProcess.run("mount", ["-o", "remount,\(readOnly ? "ro" : "rw")", path]) == 0
    }
}
