internal import Glibc
internal import SystemPackage

/// Bytes that turned out damaged, and whatever else lay in a blob's place, for a person to look at.
extension ContentCache {
    public struct Quarantined: Sendable, Hashable {
        public let name: String
        /// Of a folder with all that is in it.
        public let bytes: Int64
        /// When it got there, in UTC milliseconds by the machine's clock: good for an order.
        public let since: Int64
    }

    /// All that is in quarantine, the oldest first.
    public func inQuarantine() throws(CacheError) -> [Quarantined] {
        var found: [Quarantined] = []
        try forEachEntry(of: quarantine) { (path, info) throws(CacheError) in
            let name = String(path.dropFirst(quarantine.string.count).drop { $0 == "/" })
            // The change of its name is what its status was last changed for.
            found.append(Quarantined(name: name, bytes: Self.bytes(of: path, info), since: Self.changed(info)))
        }
        return found.sorted { ($0.since, $0.name) < ($1.since, $1.name) }
    }

    /// The files and bytes in it.
    public func quarantined() throws(CacheError) -> (files: Int, bytes: Int64) {
        let all = try inQuarantine()
        return (all.count, all.reduce(0) { $0 + $1.bytes })
    }

    /// What a look at the quarantine would find changed if anything came or went: nil where it may be doing so now.
    public func stampOfQuarantine() -> String? {
        var info = stat()
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        // A file system's times are coarse: two changes of one moment leave the same.
        guard stat(quarantine.string, &info) == 0, abs(now.tv_sec - info.st_mtim.tv_sec) > 2 else { return nil }
        return "\(info.st_ino) \(info.st_mtim.tv_sec).\(info.st_mtim.tv_nsec)"
    }

    /// Removes things from quarantine, folders with all that is in them. Files that can't be removed are passed over.
    ///
    /// - Returns: how many are gone, their bytes, and why one could not be removed.
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

    /// - Returns: what went wrong. One that isn't there is no failure.
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

    /// What is in a folder; nothing where it can't be read, which shows when it is to be removed. Closed before anybody goes
    /// deeper: a tree has more levels than a process may have open files.
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
