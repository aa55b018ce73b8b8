public import Core
internal import Glibc
internal import SystemPackage

/// Names that a web server can compute: `links/VARIANT/ab/SHA-256(cache key).EXT`, each a symbolic link to a blob.
///
/// The links are relative, so that the folder can be moved or mounted elsewhere. They save a server from asking the index,
/// and they follow it: one that is missing or left over costs a miss, never a wrong picture.
extension ContentCache {
    /// Where the link of a URL's variant lies, or would lie, relative to the cache's folder.
    ///
    /// - Returns: nil for a variant or a format whose name is no safe name of a file.
    public static func linkPath(key: String, variant: String, format: String) -> String? {
        guard isSafe(variant), isSafe(format) else { return nil }
        let name = BlobHash(of: key.utf8)
        return "links/\(variant)/\(name.shard)/\(name.hex).\(fileExtension(of: format))"
    }

    /// As people write it: `jpg` for `jpeg`, `tif` for `tiff`; the others are called like their format.
    public static func fileExtension(of format: String) -> String {
        ["jpeg": "jpg", "tiff": "tif"][format] ?? format
    }

    /// Makes a link point to a blob, in one step for its readers.
    public func link(_ hash: BlobHash, key: String, variant: String, format: String) throws(CacheError) {
        guard let relative = Self.linkPath(key: key, variant: variant, format: format) else { return }
        let path = directory.pushing(FilePath(relative))
        let target = "../../../blobs/sha256/\(hash.shard)/\(hash.hex)"
        if symlink(target, path.string) == 0 { return }
        if errno == ENOENT {
            try Folders.make(path.removingLastComponent())
            if symlink(target, path.string) == 0 { return }
        }
        guard errno == EEXIST else { throw CacheError(Errno(rawValue: errno), "The link \(path) can't be made") }
        if linkTarget(of: path.string) == target { return }
        // One name for the new one, so that a crash leaves at most one, which the next replaces.
        let fresh = path.string + ".new"
        Glibc.unlink(fresh)
        guard symlink(target, fresh) == 0, rename(fresh, path.string) == 0 else {
            let error = CacheError(Errno(rawValue: errno), "The link \(path) can't be replaced")
            Glibc.unlink(fresh)
            throw error
        }
    }

    /// Deletes a link. One that isn't there is no failure.
    public func unlink(key: String, variant: String, format: String) throws(CacheError) {
        guard let relative = Self.linkPath(key: key, variant: variant, format: format) else { return }
        let path = directory.pushing(FilePath(relative))
        guard Glibc.unlink(path.string) != 0, errno != ENOENT, errno != ENOTDIR else { return }
        throw CacheError(Errno(rawValue: errno), "The link \(path) can't be deleted")
    }

    /// The blob that a link leads to; nil when it is no link of ours.
    public func blob(atLink relative: String) -> BlobHash? {
        linkTarget(of: directory.pushing(FilePath(relative)).string).flatMap { $0.split(separator: "/").last }
            .flatMap { BlobHash(String($0)) }
    }

    /// Every name in the tree of links, relative to the cache's folder.
    public func forEachLink(_ visit: (String) throws -> Void) throws {
        for variant in try names(in: "links") {
            for shard in try names(in: "links/\(variant)") {
                for name in try names(in: "links/\(variant)/\(shard)") {
                    try visit("links/\(variant)/\(shard)/\(name)")
                }
            }
        }
    }

    /// Deletes a name that has no business in the tree.
    ///
    /// - Returns: false for a folder, which is left as it is, since it may hold anything.
    @discardableResult
    public func removeLink(_ relative: String) throws(CacheError) -> Bool {
        let path = directory.pushing(FilePath(relative))
        guard Glibc.unlink(path.string) != 0, errno != ENOENT else { return true }
        let reason = Errno(rawValue: errno)
        if isFolder(atLink: relative) { return false }
        throw CacheError(reason, "The link \(path) can't be deleted")
    }

    /// Whether a folder lies in a link's place.
    public func isFolder(atLink relative: String) -> Bool {
        var info = stat()
        return lstat(directory.pushing(FilePath(relative)).string, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }

    /// Removes the empty folders of a tree without links.
    public func removeEmptyLinkFolders() throws {
        func remove(_ relative: String) { rmdir(directory.pushing(FilePath(relative)).string) }
        for variant in try names(in: "links") {
            for shard in try names(in: "links/\(variant)") { remove("links/\(variant)/\(shard)") }
            remove("links/\(variant)")
        }
        remove("links")
    }

    private func names(in relative: String) throws -> [String] {
        guard let folder = opendir(directory.pushing(FilePath(relative)).string) else {
            // Not made yet, or something else in a folder's place.
            if errno == ENOENT || errno == ENOTDIR { return [] }
            throw CacheError(Errno(rawValue: errno), "The folder \(relative) of the cache can't be read")
        }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    private static func isSafe(_ name: String) -> Bool {
        let letters = name.utf8.allSatisfy {
            (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || "@._-".utf8.contains($0)
        }
        return letters && !name.isEmpty && name.utf8.count <= 100 && !name.hasPrefix(".")
    }
}
