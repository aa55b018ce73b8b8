internal import Core
internal import Glibc

/// The file to which a database's name leads.
///
/// Locks belong to the file. SQLite follows symbolic links and keeps its log beside the file to which they lead. The
/// lock file is placed there, too, so all names of one file lead to the same locks.
struct DatabaseFile: Sendable {
    /// Its path without symbolic links.
    let name: String

    /// - Throws: `cannotOpen` for a file with several names of its own (hard links): SQLite keeps a log for each name,
    ///   and the logs would overwrite each other's pages (https://www.sqlite.org/howtocorrupt.html, 2.5).
    init(path: String) throws(JobsError) {
        name = Self.withoutLinks(path, depth: 0)
        var info = stat()
        guard stat(name, &info) == 0 else {
            try Self.checkFolder(of: name, path)
            return
        }
        guard info.st_mode & S_IFMT != S_IFDIR else {
            throw JobsError(.cannotOpen, "The database \(path) is a folder. Name a file in it: \(path)/worker.db")
        }
        guard Self.isRegular(info), info.st_nlink > 1 else { return }
        throw JobsError(
            .cannotOpen,
            """
            The database \(path) has \(info.st_nlink) names (hard links), and SQLite would keep a log for each of them. \
            Remove all but one, or copy it with: worker db backup
            """)
    }

    /// Says which folder is missing; otherwise the message would be about the lock file.
    private static func checkFolder(of name: String, _ path: String) throws(JobsError) {
        let folder = split(name).folder
        var info = stat()
        guard stat(folder, &info) != 0, errno == ENOENT else { return }
        throw JobsError(
            .cannotOpen, "The folder \(folder) of the database \(path) does not exist. Make it with: mkdir -p \(folder)"
        )
    }

    /// Device and inode; nil if the file does not exist.
    var identity: Identity? { Self.identity(name) }

    static func identity(_ path: String) -> Identity? {
        var info = stat()
        guard stat(path, &info) == 0 else { return nil }
        return Identity(device: UInt64(info.st_dev), inode: UInt64(info.st_ino))
    }

    /// Whether the file has no bytes or does not exist; false if it can't be looked up.
    static func isEmpty(_ path: String) -> Bool {
        var info = stat()
        return stat(path, &info) == 0 ? info.st_size == 0 : errno == ENOENT
    }

    struct Identity: Hashable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    /// Whether the file with this identity was deleted, or another file has its name.
    func isReplaced(_ identity: Identity) -> Bool { Self.isReplaced(name, identity) }

    /// False if the file can't be looked up: nothing is known then, and the next call looks again.
    static func isReplaced(_ path: String, _ identity: Identity) -> Bool {
        var info = stat()
        guard stat(path, &info) == 0 else { return errno == ENOENT || errno == ENOTDIR }
        return Identity(device: UInt64(info.st_dev), inode: UInt64(info.st_ino)) != identity
    }

    private static func isRegular(_ info: stat) -> Bool { info.st_mode & S_IFMT == S_IFREG }

    /// Also resolves a missing file, and a link that leads to one.
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
        guard depth < 40, let target = linkTarget(of: plain) else { return plain }
        return withoutLinks(target.hasPrefix("/") ? target : "\(folder)/\(target)", depth: depth + 1)
    }

    private static func split(_ path: String) -> (folder: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        let folder = String(path[..<slash])
        return (folder.isEmpty ? "/" : folder, String(path[path.index(after: slash)...]))
    }

    // MARK: - A rebuild

    /// The new database while a rebuild creates it.
    static func rebuildDraft(of path: String) -> String { path + ".rebuilding" }

    static func removeRebuildDraft(_ draft: String) {
        for ending in ["", "-wal", "-shm", "-journal"] { unlink(draft + ending) }
    }
}

/// Creates files that contain URLs, headers and passwords: at most their owner and group may read them.
enum PrivateFile {
    static let mode: mode_t = 0o640

    /// Creates an empty file if there is none, since SQLite would create one that all users may read; its log and
    /// shared memory get the same permissions. The umask can only remove permissions. An existing file stays as it is.
    static func make(_ path: String) {
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        // If this fails, SQLite reports the error when it opens the file.
        if file >= 0 { close(file) }
    }
}
