public import Core
internal import Glibc
internal import SystemPackage

/// Names that a web server can compute: `links/VARIANT/ab/SHA-256(cache key).EXT`, each a symbolic link to a blob.
///
/// The links are relative, so the folder can be moved or mounted elsewhere. With them a server need not query the
/// index. Workers keep the links in step with the index. A missing or leftover link costs a cache miss, never a wrong
/// picture.
public struct LinkTree: Sendable {
    /// The cache's folder.
    let directory: FilePath

    /// Makes a link point to a blob. Readers see the old link or the new one.
    public func link(_ hash: BlobHash, key: String, variant: String, format: String) throws(CacheError) {
        guard let relative = LinkName.path(key: key, variant: variant, format: format) else { return }
        let path = directory.pushing(FilePath(relative))
        let target = "../../../blobs/sha256/\(hash.shard)/\(hash.hex)"
        if symlink(target, path.string) == 0 { return }
        if errno == ENOENT {
            try Folders.make(path.removingLastComponent())
            if symlink(target, path.string) == 0 { return }
        }
        guard errno == EEXIST else { throw CacheError(Errno(rawValue: errno), "The link \(path) can't be made") }
        if linkTarget(of: path.string) == target { return }
        let fresh = Self.fresh(path)
        for attempt in 1...3 {
            Glibc.unlink(fresh)
            if symlink(target, fresh) == 0, rename(fresh, path.string) == 0 { return }
            let reason = Errno(rawValue: errno)
            // Another program that deletes or replaces the same link has taken the temporary one.
            if attempt < 3, reason == .noSuchFileOrDirectory || reason == .fileExists { continue }
            Glibc.unlink(fresh)
            throw CacheError(reason, "The link \(path) can't be replaced")
        }
    }

    /// The temporary name of a link. It is always the same: a crash leaves at most one such link, which the next call for
    /// this link replaces or deletes.
    private static func fresh(_ path: FilePath) -> String { path.string + ".new" }

    /// Deletes a link, and a temporary one that a crash has left. A missing link is no error.
    public func unlink(key: String, variant: String, format: String) throws(CacheError) {
        guard let relative = LinkName.path(key: key, variant: variant, format: format) else { return }
        let path = directory.pushing(FilePath(relative))
        Glibc.unlink(Self.fresh(path))
        guard Glibc.unlink(path.string) != 0, errno != ENOENT, errno != ENOTDIR else { return }
        throw CacheError(Errno(rawValue: errno), "The link \(path) can't be deleted")
    }

    /// The blob to which a link points; nil if it is no link to a blob.
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

    /// Deletes a name that does not belong in the tree.
    ///
    /// - Returns: false for a folder, which is kept, since it may contain any files.
    @discardableResult
    public func removeLink(_ relative: String) throws(CacheError) -> Bool {
        let path = directory.pushing(FilePath(relative))
        guard Glibc.unlink(path.string) != 0, errno != ENOENT else { return true }
        let reason = Errno(rawValue: errno)
        if isFolder(atLink: relative) { return false }
        throw CacheError(reason, "The link \(path) can't be deleted")
    }

    /// Whether there is a folder under a link's name.
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
            // The folder does not exist yet, or another file has its name.
            if errno == ENOENT || errno == ENOTDIR { return [] }
            throw CacheError(Errno(rawValue: errno), "The folder \(relative) of the cache can't be read")
        }
        defer { closedir(folder) }
        var names: [String] = []
        while let name = try Folders.next(folder, at: directory.pushing(FilePath(relative))) { names.append(name) }
        return names
    }
}

/// The names of links.
public enum LinkName {
    /// The path of the link for a URL's variant, whether it exists or not, relative to the cache's folder.
    ///
    /// - Returns: nil if the variant's or the format's name is no safe file name.
    public static func path(key: String, variant: String, format: String) -> String? {
        guard isSafe(variant), isSafe(format) else { return nil }
        let name = BlobHash(of: key.utf8)
        return "links/\(variant)/\(name.shard)/\(name.hex).\(fileExtension(of: format))"
    }

    /// The usual file extension: `jpg` for `jpeg`, `tif` for `tiff`; for other formats the format's name.
    public static func fileExtension(of format: String) -> String {
        ["jpeg": "jpg", "tiff": "tif"][format] ?? format
    }

    private static func isSafe(_ name: String) -> Bool {
        let letters = name.utf8.allSatisfy {
            (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || "@._-".utf8.contains($0)
        }
        return letters && !name.isEmpty && name.utf8.count <= 100 && !name.hasPrefix(".")
    }
}
