internal import ContentCache
internal import Glibc
internal import Imaging
internal import Jobs
internal import Synchronization
internal import SystemPackage

/// Variants in a cache with a limit: not a byte of theirs lies in it before room was set aside.
extension Pipeline {
    /// Has helpers make variants. Where the cache has a limit they are written to memory, and moved when what they came to
    /// has room. What is too much for memory is made once more, with room for as much as it may come to.
    func transformed(
        _ source: BlobFile, into specs: [VariantSpec], assets: [String: Asset],
        tolerance: DecodeTolerance = DecodeTolerance(),
    ) async -> HelperOutcome {
        guard let limit = budget.limit, budget.worker != nil, !specs.isEmpty else {
            let outcome = await helpers.transform(
                source, into: specs, assets: assets, tolerance: tolerance)
            guard case .failed(.encode, _) = outcome, !specs.isEmpty else { return outcome }
            return await inMemory(source, into: specs, assets, tolerance, unless: outcome)
        }
        do {
            let count = Int64(specs.count)
            // The source lies in the cache for as long as something is made of it.
            let limit = max(0, limit - source.size)
            var place = OutputPlace(isInMemory: true, most: Int64(helpers.configuration.outputBytes) / count)
            let outcome = await helpers.transform(
                source, into: specs, assets: assets, outputs: place, tolerance: tolerance)
            if case .made(let report, let blobs) = outcome { return try await counted(report, blobs, limit) }
            guard case .outgrown = outcome else { return outcome }
            for most in [128 << 20, Int64(HelperMain.fileLimit)] {
                place = OutputPlace(most: min(most, limit / count))
                let outcome = try await transformed(
                    source, into: specs, assets: assets, outputs: place, tolerance: tolerance)
                guard case .outgrown = outcome else { return outcome }
                if place.most == limit / count { break }
            }
            return tooLarge
        } catch let error as CacheError {
            return .disk(error)
        } catch {
            return .disk(CacheError(.disk, "Room in the cache can't be set aside: \(error)"))
        }
    }

    /// With room for all that may be written, of which is given back what wasn't.
    private func transformed(
        _ source: BlobFile, into specs: [VariantSpec], assets: [String: Asset], outputs place: OutputPlace,
        tolerance: DecodeTolerance,
    ) async throws -> HelperOutcome {
        let rooms: [CacheRoom]
        switch try await budget.rooms(specs.count, of: place.most ?? 0) {
        case .granted(let granted): rooms = granted
        case .full(let reason): return .disk(CacheError(.diskFull, reason))
        }
        let outcome = await helpers.transform(
            source, into: specs, assets: assets, outputs: place, tolerance: tolerance)
        guard case .made(_, let blobs) = outcome else { return outcome }
        for (blob, room) in zip(blobs, rooms) {
            room.shrink(to: blob.size)
            blob.file.companion.withLock { $0 = room }
        }
        return outcome
    }

    /// Encoders can't tell a disk without room from any other write that fails, and the room may be back by now: what they make
    /// of the same in memory says whose fault it was.
    private func inMemory(
        _ source: BlobFile, into specs: [VariantSpec], _ assets: [String: Asset], _ tolerance: DecodeTolerance,
        unless failure: HelperOutcome,
    ) async -> HelperOutcome {
        let place = OutputPlace(
            isInMemory: true, most: Int64(helpers.configuration.outputBytes) / Int64(specs.count))
        let outcome = await helpers.transform(
            source, into: specs, assets: assets, outputs: place, tolerance: tolerance)
        guard case .made(let report, let blobs) = outcome else { return failure }
        do {
            return .made(report, try await stored(blobs))
        } catch {
            return .disk(error)
        }
    }

    private var tooLarge: HelperOutcome {
        // The source by itself would fit: other variants of it may, so that the URL isn't to blame.
        .failed(.transform, "The source and its variants come to more than the cache may hold.")
    }

    /// From memory to the cache, where there is room.
    private func counted(
        _ report: TransformReport, _ blobs: [PendingBlob], _ limit: Int64,
    ) async throws -> HelperOutcome {
        if blobs.reduce(0, { $0 + $1.size }) > limit { return tooLarge }
        if case .full(let reason) = try await budget.reserve(blobs, patiently: true) {
            return .disk(CacheError(.diskFull, reason))
        }
        return .made(report, try await stored(blobs))
    }

    /// Copies of files in memory, in the cache and with the same room.
    private func stored(_ blobs: [PendingBlob]) async throws(CacheError) -> [PendingBlob] {
        let copies = await reading.run { [cache] () -> Result<[PendingBlob], CacheError> in
            Result { () throws(CacheError) in
                var copies: [PendingBlob] = []
                for blob in blobs {
                    let file = try cache.makeFile()
                    let room = blob.file.room
                    file.companion.withLock { $0 = room }
                    try cache.copy(blob.file, to: file, size: blob.size)
                    copies.append(PendingBlob(file: file, hash: blob.hash, size: blob.size))
                }
                return copies
            }
        }
        return try copies.get()
    }
}

extension BlobFile {
    /// Bytes, as far as it is known.
    fileprivate var size: Int64 {
        var info = stat()
        return fstat(descriptor.rawValue, &info) == 0 ? Int64(info.st_size) : 0
    }
}
