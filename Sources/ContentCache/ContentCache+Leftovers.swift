internal import Glibc
internal import SystemPackage

/// What stays in a cache that is no blob of it, and for how long.
extension ContentCache {
    /// Removes markers that a kill has kept from getting their name.
    ///
    /// - Parameter time: UTC milliseconds.
    public func removeDrafts(before time: Int64) throws(CacheError) {
        try forEachEntry(of: directory) { (path, info) throws(CacheError) in
            let name = path.dropFirst(directory.string.count).drop { $0 == "/" }
            guard name.hasPrefix(Self.draftPrefix), info.st_mode & S_IFMT == S_IFREG, Self.changed(info) < time else {
                return
            }
            guard Glibc.unlink(path) == 0 || errno == ENOENT else {
                throw CacheError(Errno(rawValue: errno), "\(path) can't be deleted")
            }
        }
    }

    static func changed(_ info: stat) -> Int64 {
        Int64(info.st_ctim.tv_sec) * 1_000 + Int64(info.st_ctim.tv_nsec) / 1_000_000
    }

    func forEachEntry(of folder: FilePath, _ visit: (String, stat) throws(CacheError) -> Void) throws(CacheError) {
        guard let entries = opendir(folder.string) else {
            throw CacheError(Errno(rawValue: errno), "The folder \(folder) can't be read")
        }
        defer { closedir(entries) }
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            let path = folder.appending(name).string
            var info = stat()
            guard name != ".", name != "..", lstat(path, &info) == 0 else { continue }
            try visit(path, info)
        }
    }
}
