internal import Glibc
internal import SystemPackage

/// A folder with all that is in it, as the quarantine may hold one.
enum FolderTree {
    /// - Returns: the error. A missing file is no error.
    static func remove(_ path: String) -> Errno? {
        guard Glibc.unlink(path) != 0, errno != ENOENT else { return nil }
        let reason = Errno(rawValue: errno)
        var info = stat()
        guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFDIR else { return reason }
        for name in names(in: path) {
            if let reason = remove(path + "/" + name) { return reason }
        }
        return rmdir(path) == 0 || errno == ENOENT ? nil : Errno(rawValue: errno)
    }

    static func bytes(of path: String, _ info: stat) -> Int64 {
        guard info.st_mode & S_IFMT == S_IFDIR else { return Int64(info.st_size) }
        return names(in: path).reduce(0) { sum, name in
            var info = stat()
            return lstat(path + "/" + name, &info) == 0 ? sum + bytes(of: path + "/" + name, info) : sum
        }
    }

    /// A folder's entries; empty if it cannot be read, which the removal then reports. The folder is closed before its
    /// subfolders are opened: a tree may have more levels than a process may have open files.
    private static func names(in path: String) -> [String] {
        guard let entries = opendir(path) else { return [] }
        defer { closedir(entries) }
        var names: [String] = []
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}

extension stat {
    /// When its name, its content or its attributes were last changed, in UTC milliseconds of the machine's clock.
    var changedAt: Int64 { Int64(st_ctim.tv_sec) * 1_000 + Int64(st_ctim.tv_nsec) / 1_000_000 }
}
