internal import CSyncing
internal import Glibc
internal import SystemPackage

/// How files and folders get to the disk.
struct Syncing: Sendable {
    /// From how many on a group is synced by one call for the whole file system, which costs as much as a few files.
    static let fewest = 8

    /// Off only to measure its cost: a crash of the machine then loses files that the index has.
    var isOn = true

    /// What became of a sync of the whole file system.
    enum Whole {
        case synced
        case failed(Errno)
        /// It can't be had here, and nothing was done: each file has to be synced by itself.
        case unknown
    }

    /// Syncs a descriptor. A call that a signal has interrupted says nothing of the data, and is made again.
    func failure(_ raw: CInt) -> Errno? {
        guard isOn else { return nil }
        return Self.failure { fsync(raw) }
    }

    /// Syncs a group of files of one file system.
    ///
    /// - Parameter witness: a folder of the file system, opened before; nil where it can't be opened.
    /// - Returns: for each file what went wrong, or nil.
    func failures(_ files: [CInt], witness: CInt?) -> [Errno?] {
        guard isOn else { return files.map { _ in nil } }
        guard files.count >= Self.fewest, let witness, Self.speaksForItsFiles(witness) else {
            return files.map { failure($0) }
        }
        // Begun one by one, a file for whose bytes there is no place says so itself.
        let begun = files.map { file in Self.failure { csync_begin(file) } }
        if begun.contains(where: { $0.map(Self.means(isMissing:)) ?? false }) { return files.map { failure($0) } }
        switch whole(witness) {
        case .unknown:
            // The kernel reports a failed write once, so it isn't asked again.
            return zip(files, begun).map { $1 ?? failure($0) }
        case .failed(let reason):
            return files.map { _ in reason }
        case .synced:
            return zip(files, begun).map { file, reason in reason ?? Self.failure { csync_failed_write(file) } }
        }
    }

    /// Syncs the file system that a folder is on, with everything that any process has written to it before.
    ///
    /// When it fails it can't be told which write was lost, so all of them count as lost. The folder is synced by itself
    /// afterwards because the disk has memory of its own: ext4 without a journal asks it to write that out before the last
    /// of its own tables are written, and once more whenever a file is synced.
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

    /// What a kernel, or a container's filter, answers that doesn't offer a call.
    private static func means(isMissing reason: Errno) -> Bool {
        [.noFunction, .notPermitted, .invalidArgument, .notSupported].contains(reason)
    }

    /// Whether syncing the file system says everything that syncing its files would. Before Linux 5.8 it kept failed
    /// writes to itself, and there are file systems where it does nothing.
    private static func speaksForItsFiles(_ raw: CInt) -> Bool {
        kernelTells && known.contains(csync_file_system_type(raw))
    }

    /// ext2 to ext4, XFS, Btrfs, F2FS and tmpfs, by the numbers of statfs(2).
    private static let known: Set<Int> = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994]

    private static let kernelTells: Bool = {
        var name = utsname()
        guard uname(&name) == 0 else { return false }
        let release = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let numbers = release.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (5, 8)
    }()
}
