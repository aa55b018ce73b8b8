internal import ContentCache
internal import Core
internal import Jobs
internal import Synchronization
internal import SystemPackage

/// The bytes of sources: opens them from memory or disk, and makes files for sources that do not come from the network.
struct SourceFiles: Sendable {
    let cache: any BlobStore
    let memory: MemoryTier
    let budget: CacheBudget
    /// Runs calls that block on the disk.
    let reading: BlockingQueue

    /// A source's bytes, from memory or read and verified from the disk.
    func open(_ hash: BlobHash) async throws(CacheError) -> BlobFile {
        if let file = memory.source(hash) { return file }
        let opened = await reading.run { [cache, memory] () -> Result<BlobFile, CacheError> in
            Result { () throws(CacheError) in
                let file = try cache.openVerified(hash)
                memory.keep(hash, file)
                return file
            }
        }
        return try opened.get()
    }

    /// Copies a blob of another cache, with space reserved for it; nil if the other cache does not have it.
    func copy(_ hash: BlobHash, size: Int64, from other: ContentCache) async throws -> PendingBlob? {
        try await reading.run { [self] in
            Result {
                try other.openWhole(hash).map { file in
                    let copy = try make(for: size)
                    try file.copy(to: copy, size: size)
                    return PendingBlob(file: copy, hash: hash, size: size)
                }
            }
        }.get()
    }

    /// Runs `body`, which blocks on the disk.
    func blocking<R: Sendable>(_ body: @escaping @Sendable () throws(Failure) -> R) async throws(Failure) -> R {
        // The thread knows for which item it works, which is reported if its file waits for space.
        try await reading.run { [item = ProcessTurns.item] in
            ProcessTurns.$item.withValue(item) { Result { () throws(Failure) in try body() } }
        }.get()
    }

    /// A new file with space reserved for this many bytes. Blocks while space is made.
    ///
    /// - Throws: `tooLarge` if that is more than the cache's limit, and `diskFull` if nothing can be evicted.
    func make(for bytes: Int64) throws(Failure) -> BlobFile {
        let reservation = budget.newReservation()
        do {
            try reservation?.growWaiting(by: Int(clamping: bytes))
            let file = try cache.makeFile()
            file.reservation.withLock { $0 = reservation }
            return file
        } catch let error as Errno where error == .fileTooLarge {
            throw Failure(.tooLarge, "The source is \(bytes) bytes, more than the cache may hold (--cache-max-size).")
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(.diskError, "The source can't be stored: \(error)")
        }
    }

    /// A new file with these bytes. Blocks.
    func store(_ bytes: [UInt8], as what: String) throws(Failure) -> PendingBlob {
        let file = try make(for: Int64(bytes.count))
        do {
            try file.descriptor.writeAll(bytes)
            return PendingBlob(file: file, hash: BlobHash(of: bytes), size: Int64(bytes.count))
        } catch {
            throw Failure(.diskError, "\(what) can't be stored: \(error)")
        }
    }
}
