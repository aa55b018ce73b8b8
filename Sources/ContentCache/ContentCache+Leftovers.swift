internal import Glibc
internal import SystemPackage

/// Removes files that are no blobs from a cache after some time.
extension ContentCache {
    /// Removes draft markers whose process was killed before it renamed them.
    ///
    /// - Parameters:
    ///   - time: UTC milliseconds; older drafts are removed in any case.
    ///   - deadBefore: UTC milliseconds; older drafts are removed if their process, which their name contains, has
    ///     ended.
    public func removeDrafts(before time: Int64, ofDeadBefore deadBefore: Int64 = .min) throws(CacheError) {
        try forEachEntry(of: directory) { (path, info) throws(CacheError) in
            let name = path.dropFirst(directory.string.count).drop { $0 == "/" }
            guard name.hasPrefix(Self.draftPrefix), info.st_mode & S_IFMT == S_IFREG else { return }
            let changed = info.changedAt
            guard changed < time || (changed < deadBefore && !Draft.isMakerAlive(ofDraft: name)) else { return }
            guard Glibc.unlink(path) == 0 || errno == ENOENT else {
                throw CacheError(Errno(rawValue: errno), "\(path) can't be deleted")
            }
        }
    }

    func forEachEntry(of folder: FilePath, _ visit: (String, stat) throws(CacheError) -> Void) throws(CacheError) {
        guard let entries = opendir(folder.string) else {
            throw CacheError(Errno(rawValue: errno), "The folder \(folder) can't be read")
        }
        defer { closedir(entries) }
        while let name = try Folders.next(entries, at: folder) {
            let path = folder.appending(name).string
            var info = stat()
            guard lstat(path, &info) == 0 else { continue }
            try visit(path, info)
        }
    }
}

/// Files in which a marker is written before it gets its name; their names contain the process.
private enum Draft {
    static func isMakerAlive(ofDraft name: some StringProtocol) -> Bool {
        let process = name.dropFirst(ContentCache.draftPrefix.count).prefix { $0 != "." }
        return pid_t(process).map { kill($0, 0) == 0 || errno == EPERM } ?? true
    }
}
