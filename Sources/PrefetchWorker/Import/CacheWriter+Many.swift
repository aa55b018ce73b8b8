internal import ContentCache
public import Core
internal import Glibc

/// Stores many pictures.
extension CacheWriter {
    /// The results of an import.
    public struct Counts: Sendable, Hashable, Encodable {
        public var stored = 0
        public var replaced = 0
        /// Pictures that the cache had already, with the same bytes.
        public var cached = 0
        /// Pictures that were refused.
        public var failed = 0
        /// Bytes of the pictures that were stored or replaced.
        public var bytes: Int64 = 0

        public var all: Int { stored + replaced + cached + failed }

        fileprivate mutating func add(_ result: Result<CachedPicture, Failure>) {
            switch result {
            case .failure: failed += 1
            case .success(let picture):
                switch picture.change {
                case .stored: stored += 1
                case .replaced: replaced += 1
                case .cached: cached += 1
                }
                if picture.change != .cached { bytes += picture.size }
            }
        }
    }

    /// Stores pictures as they come, several at once. A picture that is refused does not stop the others.
    ///
    /// If two pictures have one URL, one of them stays.
    ///
    /// - Parameters:
    ///   - limit: maximum pictures to store or replace; those that are cached or refused do not count.
    ///   - isTrial: only checks the pictures, and stores none.
    ///   - stop: ends it: pictures in flight are stored, and no more are taken.
    ///   - onEnd: called for each picture, one at a time, with the counts so far.
    /// - Throws: errors of the database and the cache, and of `pictures`; pictures in flight are stored first.
    public func put<Pictures: AsyncSequence>(
        all pictures: Pictures, limit: Int = .max, isTrial: Bool = false, stop: StopSignal = StopSignal(),
        onEnd: (NewPicture, Result<CachedPicture, Failure>, Counts) -> Void = { _, _, _ in },
    ) async throws -> Counts where Pictures.Element == NewPicture {
        var counts = Counts()
        var trouble: (any Error)?
        await withTaskGroup(of: Ended.self) { group in
            var running = 0
            func takeOne() async {
                guard let ended = await group.next() else { return }
                running -= 1
                do throws(WorkerError) {
                    let result = try ended.result.get()
                    counts.add(result)
                    onEnd(ended.picture, result, counts)
                } catch {
                    trouble = trouble ?? error
                }
            }
            var iterator = pictures.makeAsyncIterator()
            while !stop.isRequested, trouble == nil {
                // Pictures in flight may turn out as cached or refused; then they do not count toward the limit.
                if running >= width || running > 0 && counts.changed + running >= limit {
                    await takeOne()
                    continue
                }
                guard counts.changed < limit else { break }
                do {
                    guard let picture = try await iterator.next() else { break }
                    running += 1
                    group.addTask { Ended(picture: picture, result: await self.ended(picture, isTrial: isTrial)) }
                } catch {
                    trouble = error
                }
            }
            while running > 0 { await takeOne() }
        }
        if let trouble { throw trouble }
        return counts
    }

    private struct Ended: Sendable {
        let picture: NewPicture
        let result: Result<Result<CachedPicture, Failure>, WorkerError>
    }

    private func ended(
        _ picture: NewPicture, isTrial: Bool,
    ) async -> Result<Result<CachedPicture, Failure>, WorkerError> {
        // The files of all pictures in flight together stay within a bound.
        await memory.holding(picture.expectedBytes) {
            do throws(WorkerError) {
                return .success(try await isTrial ? judge(picture) : put(picture))
            } catch {
                return .failure(error)
            }
        }
    }
}

extension CacheWriter.Counts {
    fileprivate var changed: Int { stored + replaced }
}

extension NewPicture {
    /// The bytes of the file, as far as they are known before it is read.
    fileprivate var expectedBytes: Int {
        switch content {
        case .bytes(let bytes): return bytes.count
        case .opened(let file): return Int(clamping: file.descriptor.size ?? 0)
        case .path(let path):
            var status = stat()
            return stat(path, &status) == 0 ? Int(clamping: status.st_size) : 0
        case .stream, .refused: return 0
        }
    }
}
