internal import ContentCache
internal import Jobs
internal import Synchronization
internal import SystemPackage

extension CacheBudget {
    /// A new file that has room for so many bytes, which don't come from the network. Blocks while room is made.
    ///
    /// - Throws: `tooLarge` where the cache may not hold as many, and `diskFull` where what it holds can't go.
    func makeFile(for bytes: Int64, in cache: ContentCache) throws(FetchFailure) -> BlobFile {
        do {
            let room = newRoom()
            try room?.growWaiting(by: Int(clamping: bytes))
            let file = try cache.makeFile()
            file.companion.withLock { $0 = room }
            return file
        } catch let error as Errno where error == .fileTooLarge {
            throw FetchFailure(
                failure: .tooLarge, message: "The source is \(bytes) bytes, more than the cache may hold.")
        } catch let error as Errno {
            throw FetchFailure(failure: .diskFull, message: "The cache has no room for \(bytes) bytes: \(error)")
        } catch {
            throw FetchFailure(failure: .diskError, message: "The source can't be stored: \(error)")
        }
    }
}
