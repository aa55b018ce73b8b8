internal import CSyncing
internal import Glibc
internal import SystemPackage

/// Syncs files and folders to the disk.
struct Syncing: Sendable {
    /// From this number on one call syncs the whole file system for a group. It costs as much as syncing a few files.
    static let fewest = 8

    /// Off only to measure the cost: after a crash of the machine the index then names files that are lost.
    var isOn = true

    /// The result of a sync of the whole file system.
    enum Whole {
        case synced
        case failed(Errno)
        /// The call is not available here, and nothing was done: each file must be synced by itself.
        case unknown
    }

    /// Syncs a descriptor. A call that a signal interrupted is repeated, since it tells nothing about the data.
    func failure(_ raw: CInt) -> Errno? {
        guard isOn else { return nil }
        return Self.failure { fsync(raw) }
    }

    /// Syncs a group of files of one file system.
    ///
    /// - Parameter witness: a folder of the file system that was opened before; nil if it can't be opened.
    /// - Returns: the error of each file, or nil.
    func failures(_ files: [CInt], witness: CInt?) -> [Errno?] {
        guard isOn else { return files.map { _ in nil } }
        guard files.count >= Self.fewest, let witness, Self.speaksForItsFiles(witness) else {
            return files.map { failure($0) }
        }
        // Writing starts file by file, so that a file for which there is no space reports its own error.
        let begun = files.map { file in Self.failure { csync_begin(file) } }
        if begun.contains(where: { $0.map(Self.means(isMissing:)) ?? false }) { return files.map { failure($0) } }
        switch whole(witness) {
        case .unknown:
            // The kernel reports a failed write once, so such a file is not synced again.
            return zip(files, begun).map { $1 ?? failure($0) }
        case .failed(let reason):
            return files.map { _ in reason }
        case .synced:
            return zip(files, begun).map { file, reason in reason ?? Self.failure { csync_failed_write(file) } }
        }
    }

    /// Syncs the file system of a folder, with everything that any process has written to it before.
    ///
    /// If it fails, the lost write is unknown, so all writes count as lost. The folder is synced by itself afterwards
    /// because the disk has a write cache: ext4 without a journal flushes that cache before it writes the last of its
    /// own tables, and flushes it again whenever a file is synced.
    func whole(_ witness: CInt) -> Whole {
        guard isOn else { return .synced }
        guard Self.speaksForItsFiles(witness) else { return .unknown }
        if let reason = Self.failure({ csync_file_system(witness) }) {
            return Self.means(isMissing: reason) ? .unknown : .failed(reason)
        }
        return failure(witness).map { .failed($0) } ?? .synced
    }

    private static func failure(_ call: () -> CInt) -> Errno? {
        while call() != 0 {
            if errno != EINTR { return Errno(rawValue: errno) }
        }
        return nil
    }

    /// Whether the error means that the kernel, or a container's seccomp filter, does not offer the call.
    private static func means(isMissing reason: Errno) -> Bool {
        [.noFunction, .notPermitted, .invalidArgument, .notSupported].contains(reason)
    }

    /// Whether syncing the file system reports the same errors as syncing its files. Linux before 5.8 did not report
    /// failed writes there, and on some file systems the call does nothing.
    private static func speaksForItsFiles(_ raw: CInt) -> Bool {
        kernelTells && known.contains(csync_file_system_type(raw))
    }

    /// ext2 to ext4, XFS, Btrfs, F2FS and tmpfs, by their numbers in statfs(2).
    private static let known: Set<Int> = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994]

    private static let kernelTells: Bool = {
        var name = utsname()
        guard uname(&name) == 0 else { return false }
        let release = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let numbers = release.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (5, 8)
    }()
}
