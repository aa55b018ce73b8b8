internal import Glibc
internal import SystemPackage

/// The name by which a cache and its index recognize each other, in `CACHE_ID` beside the version marker. Only the
/// collector of an index that belongs to this cache may treat files without a row as orphans.
public struct CacheIdentity: Sendable {
    let cache: ContentCache
    private var directory: FilePath { cache.directory }
    private var backing: (any BackingStore)? { cache.backing }

    private var identityFile: FilePath { directory.appending("CACHE_ID") }

    /// - Returns: nil for a cache that never had an index, or only an index of an older version.
    public func name() throws(CacheError) -> String? {
        if let backing { return try backing.identity() }
        guard let text = try Folders.smallFile(identityFile) else { return nil }
        let name = text.filter { !$0.isWhitespace }
        guard !name.isEmpty else { throw CacheError(.notACache, "\(identityFile) can't be read; it must hold a name.") }
        return name
    }

    /// Names the cache, unless it has a name.
    ///
    /// - Returns: the cache's name.
    public func give(_ name: String) throws(CacheError) -> String {
        if let backing { return try backing.identify(as: name) }
        if let known = try self.name() { return known }
        try write(identity: name) { draft in
            // A link, since another worker may do the same at this moment, and exactly one name must win.
            Glibc.link(draft, identityFile.string) == 0 || errno == EEXIST
        }
        return try self.name() ?? name
    }

    /// Renames the cache: from then on it belongs to no index that has the old name.
    public func change(to name: String) throws(CacheError) {
        if let backing { return try backing.changeIdentity(to: name) }
        guard try self.name() != name else { return }
        try write(identity: name) { draft in Glibc.rename(draft, identityFile.string) == 0 }
    }

    private var ownerFile: FilePath { directory.appending("CACHE_OWNER") }

    /// The description of itself that the index stored in this cache; nil if it stored none.
    public func owner() throws(CacheError) -> String? {
        if let backing { return try backing.owner() }
        return try Folders.smallFile(ownerFile)
    }

    public func setOwner(_ text: String) throws(CacheError) {
        if let backing { return try backing.setOwner(text) }
        guard try owner() != text + "\n" else { return }
        try write(identity: text) { draft in Glibc.rename(draft, ownerFile.string) == 0 }
    }

    /// Deletes the description, so that the next index that uses this cache stores its own.
    public func forgetOwner() throws(CacheError) {
        if let backing { return try backing.setOwner("") }
        guard Glibc.unlink(ownerFile.string) == 0 || errno == ENOENT else {
            throw CacheError(Errno(rawValue: errno), "\(ownerFile) can't be deleted")
        }
    }

    private func write(identity name: String, _ publish: (String) -> Bool) throws(CacheError) {
        do {
            try writeOnce(name, publish)
        } catch let error as Errno where error == .noSuchFileOrDirectory {
            // A worker in another container does not see this process. It may have deleted the draft as a leftover of a
            // killed process, so this tries once more.
            do { try writeOnce(name, publish) } catch { throw unnamed(error) }
        } catch {
            throw unnamed(error)
        }
    }

    private func unnamed(_ error: any Error) -> CacheError {
        CacheError((error as? Errno) ?? .ioError, "CACHE_ID or CACHE_OWNER of the cache \(directory) can't be written")
    }

    private func writeOnce(_ name: String, _ publish: (String) -> Bool) throws {
        let temporary = directory.appending("\(ContentCache.draftPrefix)\(getpid()).\(UInt32.random(in: 0 ... .max))")
        let file = try FileDescriptor.open(
            temporary, .writeOnly, options: [.create, .truncate, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead])
        defer { Glibc.unlink(temporary.string) }
        try file.closeAfter {
            try file.writeAll((name + "\n").utf8)
            if let reason = cache.syncing.failure(file.rawValue) { throw reason }
        }
        guard publish(temporary.string) else { throw Errno(rawValue: errno) }
        try cache.syncDirectory(directory)
    }
}
