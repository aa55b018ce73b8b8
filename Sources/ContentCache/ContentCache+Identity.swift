internal import Glibc
internal import SystemPackage

/// The name by which a cache and its index know each other, in `CACHE_ID` beside the marker of its version. Only a
/// collector whose index belongs to this cache may take files that the index doesn't know for left-overs.
extension ContentCache {
    private var identityFile: FilePath { directory.appending("CACHE_ID") }

    /// - Returns: nil for a cache that never had an index, or only ones of older versions.
    public func identity() throws(CacheError) -> String? {
        guard let text = try Folders.smallFile(identityFile) else { return nil }
        let name = text.filter { !$0.isWhitespace }
        guard !name.isEmpty else { throw CacheError(.notACache, "\(identityFile) can't be read; it must hold a name.") }
        return name
    }

    /// Gives the cache a name, unless it has one.
    ///
    /// - Returns: the one it has then.
    public func identify(as name: String) throws(CacheError) -> String {
        if let known = try identity() { return known }
        try write(identity: name) { draft in
            // A link, since another worker may be doing the same, and one name has to win.
            Glibc.link(draft, identityFile.string) == 0 || errno == EEXIST
        }
        return try identity() ?? name
    }

    /// Gives the cache another name than it has: no index of that one is taken for its own any more.
    public func changeIdentity(to name: String) throws(CacheError) {
        guard try identity() != name else { return }
        try write(identity: name) { draft in Glibc.rename(draft, identityFile.string) == 0 }
    }

    private var ownerFile: FilePath { directory.appending("CACHE_OWNER") }

    /// The note that the index of this cache has left here about itself; nil where none has.
    public func owner() throws(CacheError) -> String? { try Folders.smallFile(ownerFile) }

    public func setOwner(_ text: String) throws(CacheError) {
        guard try owner() != text + "\n" else { return }
        try write(identity: text) { draft in Glibc.rename(draft, ownerFile.string) == 0 }
    }

    /// Lets the next index that uses this cache leave its own.
    public func forgetOwner() throws(CacheError) {
        guard Glibc.unlink(ownerFile.string) == 0 || errno == ENOENT else {
            throw CacheError(Errno(rawValue: errno), "\(ownerFile) can't be deleted")
        }
    }

    private func write(identity name: String, _ publish: (String) -> Bool) throws(CacheError) {
        do {
            try writeOnce(name, publish)
        } catch let error as Errno where error == .noSuchFileOrDirectory {
            // A worker in another container doesn't see our process, and has taken the draft for what a kill has left.
            do { try writeOnce(name, publish) } catch { throw unnamed(error) }
        } catch {
            throw unnamed(error)
        }
    }

    private func unnamed(_ error: any Error) -> CacheError {
        CacheError((error as? Errno) ?? .ioError, "The cache \(directory) can't be given a name")
    }

    private func writeOnce(_ name: String, _ publish: (String) -> Bool) throws {
        let temporary = directory.appending("\(Self.draftPrefix)\(getpid()).\(UInt32.random(in: 0 ... .max))")
        let file = try FileDescriptor.open(
            temporary, .writeOnly, options: [.create, .truncate, .closeOnExec],
            permissions: [.ownerReadWrite, .groupRead, .otherRead])
        defer { Glibc.unlink(temporary.string) }
        try file.closeAfter {
            try file.writeAll((name + "\n").utf8)
            if let reason = syncing.failure(file.rawValue) { throw reason }
        }
        guard publish(temporary.string) else { throw Errno(rawValue: errno) }
        try syncDirectory(directory)
    }

    /// Whether there is no blob in it.
    public func hasNoBlobs() throws -> Bool {
        for shard in 0..<256 where try !files(inShard: shard).isEmpty { return false }
        return true
    }
}
