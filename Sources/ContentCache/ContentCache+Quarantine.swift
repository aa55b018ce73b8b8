internal import Glibc
internal import SystemPackage

/// Keeps damaged bytes, and other files found under a blob's name, for a person to inspect.
extension ContentCache {
    public struct Quarantined: Sendable, Hashable {
        public let name: String
        /// For a folder, the bytes of all files in it.
        public let bytes: Int64
        /// When it was moved to quarantine, in UTC milliseconds of the machine's clock; only used to sort.
        public let since: Int64
    }

    /// All entries of the quarantine, oldest first.
    public func inQuarantine() throws(CacheError) -> [Quarantined] {
        var found: [Quarantined] = []
        try forEachEntry(of: quarantine) { (path, info) throws(CacheError) in
            let name = String(path.dropFirst(quarantine.string.count).drop { $0 == "/" })
            // Renaming the file was the last change of its status.
            found.append(Quarantined(name: name, bytes: Self.bytes(of: path, info), since: Self.changed(info)))
        }
        return found.sorted { ($0.since, $0.name) < ($1.since, $1.name) }
    }

    /// The number of entries in quarantine, and their bytes.
    public func quarantined() throws(CacheError) -> (files: Int, bytes: Int64) {
        let all = try inQuarantine()
        return (all.count, all.reduce(0) { $0 + $1.bytes })
    }

    /// A stamp that differs after an entry was added or removed; nil if one may be changing at this moment.
    public func stampOfQuarantine() -> String? {
        var info = stat()
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        // A file system's times are coarse: two changes within one tick leave the same time.
        guard stat(quarantine.string, &info) == 0, abs(now.tv_sec - info.st_mtim.tv_sec) > 2 else { return nil }
        return "\(info.st_ino) \(info.st_mtim.tv_sec).\(info.st_mtim.tv_nsec)"
    }

    /// Removes entries from quarantine, folders with all their content. Entries that can't be removed are skipped.
    ///
    /// - Returns: the number of removed entries, their bytes, and the error of an entry that could not be removed.
    public func remove(
        fromQuarantine things: [Quarantined],
    ) -> (files: Int, bytes: Int64, trouble: String?) {
        var gone: (files: Int, bytes: Int64, trouble: String?) = (0, 0, nil)
        for thing in things where !thing.name.contains("/") {
            let path = quarantine.appending(thing.name).string
            if let reason = Self.removeTree(path) {
                gone.trouble = "\(path) can't be deleted: \(reason)."
            } else {
                gone.files += 1
                gone.bytes += thing.bytes
            }
        }
        return gone
    }

    /// - Returns: the error. A missing file is no error.
    private static func removeTree(_ path: String) -> Errno? {
        guard Glibc.unlink(path) != 0, errno != ENOENT else { return nil }
        let reason = Errno(rawValue: errno)
        var info = stat()
        guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFDIR else { return reason }
        for name in names(in: path) {
            if let reason = removeTree(path + "/" + name) { return reason }
        }
        return rmdir(path) == 0 || errno == ENOENT ? nil : Errno(rawValue: errno)
    }

    private static func bytes(of path: String, _ info: stat) -> Int64 {
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
