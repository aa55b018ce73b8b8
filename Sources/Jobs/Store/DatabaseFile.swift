internal import Glibc

/// The file behind a database's name.
///
/// Locks belong to the file. SQLite follows symbolic links and keeps its log beside the file they lead to, and so do we with the
/// lock file: every name that leads to the same file then leads to the same locks.
struct DatabaseFile: Sendable {
    /// Its name without symbolic links.
    let name: String

    /// - Throws: `cannotOpen` for a file with several names of its own (hard links): SQLite keeps a log for each name, and the
    ///   logs would overwrite each other's pages (https://www.sqlite.org/howtocorrupt.html, 2.5).
    init(path: String) throws(JobsError) {
        name = Self.withoutLinks(path, depth: 0)
        var info = stat()
        guard stat(name, &info) == 0, Self.isRegular(info), info.st_nlink > 1 else { return }
        throw JobsError(
            .cannotOpen,
            """
            The database \(path) has \(info.st_nlink) names (hard links), and SQLite would keep a log for each of them. \
            Remove all but one, or copy it with: worker db backup
            """)
    }

    /// What tells the file from another of the same name; nil where it can't be asked for.
    var identity: Identity? {
        var info = stat()
        guard stat(name, &info) == 0 else { return nil }
        return Identity(device: UInt64(info.st_dev), inode: UInt64(info.st_ino))
    }

    struct Identity: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    /// Whether the file that had this identity is gone, or another has its name.
    func isReplaced(_ identity: Identity) -> Bool {
        var info = stat()
        guard stat(name, &info) == 0 else { return errno == ENOENT || errno == ENOTDIR }
        return Identity(device: UInt64(info.st_dev), inode: UInt64(info.st_ino)) != identity
    }

    private static func isRegular(_ info: stat) -> Bool { info.st_mode & S_IFMT == S_IFREG }

    /// Also for a file that isn't there yet, and for a link that leads to one.
    private static func withoutLinks(_ path: String, depth: Int) -> String {
        if let real = realpath(path, nil) {
            defer { free(real) }
            return String(cString: real)
        }
        let parts = split(path)
        guard let real = realpath(parts.folder, nil) else { return path }
        defer { free(real) }
        let folder = String(cString: real)
        let plain = folder == "/" ? "/\(parts.name)" : "\(folder)/\(parts.name)"
        guard depth < 40, let target = link(plain) else { return plain }
        return withoutLinks(target.hasPrefix("/") ? target : "\(folder)/\(target)", depth: depth + 1)
    }

    private static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        let folder = String(path[..<slash])
        return (folder.isEmpty ? "/" : folder, String(path[path.index(after: slash)...]))
    }

    private static func link(_ path: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = buffer.withUnsafeMutableBytes { bytes in
            bytes.baseAddress.map { readlink(path, $0.assumingMemoryBound(to: CChar.self), bytes.count) } ?? -1
        }
        return count > 0 ? String(decoding: buffer.prefix(count), as: UTF8.self) : nil
    }
}
