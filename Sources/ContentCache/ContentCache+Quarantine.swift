internal import Glibc
internal import SystemPackage

/// A file or folder in the quarantine.
public struct QuarantinedFile: Sendable, Hashable {
    public let name: String
    /// For a folder, the bytes of all files in it.
    public let bytes: Int64
    /// When it was moved to quarantine, in UTC milliseconds of the machine's clock; only used to sort.
    public let since: Int64
}

/// Keeps damaged bytes, and other files found under a blob's name, for a person to inspect.
extension ContentCache {
    /// All entries of the quarantine, oldest first.
    public func inQuarantine() throws(CacheError) -> [QuarantinedFile] {
        var found: [QuarantinedFile] = []
        try forEachEntry(of: quarantine) { (path, info) throws(CacheError) in
            let name = String(path.dropFirst(quarantine.string.count).drop { $0 == "/" })
            // Renaming the file was the last change of its status.
            found.append(QuarantinedFile(name: name, bytes: FolderTree.bytes(of: path, info), since: info.changedAt))
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
        fromQuarantine things: [QuarantinedFile],
    ) -> (files: Int, bytes: Int64, trouble: String?) {
        var gone: (files: Int, bytes: Int64, trouble: String?) = (0, 0, nil)
        for thing in things where !thing.name.contains("/") {
            let path = quarantine.appending(thing.name).string
            if let reason = FolderTree.remove(path) {
                gone.trouble = "\(path) can't be deleted: \(reason)."
            } else {
                gone.files += 1
                gone.bytes += thing.bytes
            }
        }
        return gone
    }
}
