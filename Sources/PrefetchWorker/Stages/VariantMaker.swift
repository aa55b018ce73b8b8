internal import ContentCache
internal import Core
internal import Glibc
internal import HelperProtocol
internal import ImageFiles
internal import Jobs
internal import Synchronization
internal import SystemPackage
internal import Variants

/// Makes the variants of one source: first all that helpers make in one request, then those with commands, one by one.
///
/// In a cache with a limit, a variant is written to the cache's folder only after space was reserved for it.
struct VariantMaker: Sendable {
    let helpers: HelperPool
    let commands: Commands
    let files: SourceFiles

    private var budget: CacheBudget { files.budget }

    /// A source and the variants to make.
    private struct Order {
        let source: BlobFile
        let specs: [VariantSpec]
        let assets: [String: Asset]
        let tolerance: DecodeTolerance
    }

    /// - Returns: the source's facts, and a file for each variant.
    func make(
        _ specs: [VariantSpec], of source: BlobFile, _ assets: [String: Asset], tolerance: DecodeTolerance,
    ) async throws(Failure) -> (TransformReport, [PendingBlob]) {
        guard !specs.isEmpty else { return try await Self.made(helpers.facts(of: source, tolerance: tolerance)) }
        try HelperPool.check(files: specs.count, assets: assets.count)
        let staged = specs.map(StagedVariant.init)
        let firsts: [VariantSpec]
        do {
            firsts = try zip(specs, staged).map { try $1?.first() ?? $0 }
        } catch {
            throw Failure(.transform, "\(error)")
        }
        var (report, blobs) = try await transformed(
            Order(source: source, specs: firsts, assets: assets, tolerance: tolerance))
        var renditions = report.renditions
        for (index, staged) in staged.enumerated() {
            guard let staged else { continue }
            (blobs[index], renditions[index]) = try await finish(
                staged, (blobs[index], renditions[index]), of: report.facts, assets)
        }
        return (TransformReport(facts: report.facts, renditions: renditions), blobs)
    }

    private static func made(
        _ result: Result<HelperAnswer, Failure>,
    ) throws(Failure) -> (TransformReport, [PendingBlob]) {
        guard case .made(let report, let blobs) = try result.get() else { throw .stopped() }
        return (report, blobs)
    }

    /// Makes a variant from the picture that its first command gets.
    private func finish(
        _ staged: StagedVariant, _ first: (PendingBlob, Rendition), of source: ImageFacts, _ assets: [String: Asset],
    ) async throws(Failure) -> (PendingBlob, Rendition) {
        var (blob, rendition) = first
        for (index, command) in staged.commands.enumerated() {
            let answer = try await commands.run(
                command, on: blob.file, width: rendition.width, height: rendition.height)
            let spec: VariantSpec
            do { spec = try staged.spec(after: index, of: source) } catch { throw Failure(.transform, "\(error)") }
            let order = Order(
                source: answer, specs: [spec], assets: assets.filter { spec.assetNames.contains($0.key) },
                tolerance: DecodeTolerance())
            do throws(Failure) {
                let (report, blobs) = try await transformed(order)
                guard let made = report.renditions.first, let file = blobs.first else { throw .stopped() }
                (blob, rendition) = (file, made)
            } catch {
                throw error.blaming(command.name)
            }
        }
        return (blob, rendition)
    }

    // MARK: - Reserved space

    /// Makes variants in a helper. In a cache with a limit they are written to memory and then copied to reserved
    /// space. Variants that are too large for memory are made again, with space reserved for as much as they may need.
    private func transformed(_ order: Order) async throws(Failure) -> (TransformReport, [PendingBlob]) {
        guard let limit = budget.limit, budget.worker != nil else {
            return try Self.made(.success(await ask(order, OutputTarget())))
        }
        let count = Int64(order.specs.count)
        // The source is in the cache while its variants are made.
        let left = max(0, limit - (order.source.descriptor.size ?? 0))
        let inMemory = OutputTarget(isInMemory: true, most: Int64(helpers.configuration.outputBytes) / count)
        if case .made(let report, let blobs) = try await ask(order, inMemory) {
            return (report, try await counted(blobs, left))
        }
        for most in [128 << 20, Int64(HelperBounds.file)] {
            let target = OutputTarget(most: min(most, left / count))
            if let made = try await transformed(order, into: target) { return made }
            if target.most == left / count { break }
        }
        throw Self.tooLarge
    }

    /// Encoders do not distinguish a full disk from other failed writes, and there may be space again by now. So after
    /// an encoder failed, the variants are made again in memory, which shows whether the disk was the cause.
    private func ask(_ order: Order, _ target: OutputTarget) async throws(Failure) -> HelperAnswer {
        let result = await answer(order, target)
        guard !target.isInMemory, case .failure(let failure) = result, failure.failureClass == .encode else {
            return try result.get()
        }
        let most = min(Int64(helpers.configuration.outputBytes) / Int64(order.specs.count), target.most ?? .max)
        switch await answer(order, OutputTarget(isInMemory: true, most: most)) {
        case .success(.made(let report, let blobs)): return .made(report, try await stored(blobs))
        // They are too large for memory, so they are written to the disk once more.
        case .success: return try await answer(order, target).get()
        case .failure: throw failure
        }
    }

    private func answer(_ order: Order, _ target: OutputTarget) async -> Result<HelperAnswer, Failure> {
        await helpers.transform(
            order.source, into: order.specs, assets: order.assets, outputs: target, tolerance: order.tolerance)
    }

    /// Makes variants with space reserved for their maximum size; nil if they exceed it. Unused space is released.
    private func transformed(
        _ order: Order, into target: OutputTarget,
    ) async throws(Failure) -> (TransformReport, [PendingBlob])? {
        let reservations = try await budget.reservations(order.specs.count, of: target.most ?? 0)
        guard case .made(let report, let blobs) = try await ask(order, target) else { return nil }
        for (blob, reservation) in zip(blobs, reservations) {
            reservation.shrink(to: blob.size)
            blob.file.reservation.withLock { $0 = reservation }
        }
        return (report, blobs)
    }

    private static var tooLarge: Failure {
        // The source alone would fit, so other variants of it may too, and its URL is not at fault.
        Failure(.transform, "The source and its variants together are over the cache's limit (--cache-max-size).")
    }

    /// Copies from memory to the cache, if there is space.
    private func counted(_ blobs: [PendingBlob], _ limit: Int64) async throws(Failure) -> [PendingBlob] {
        guard blobs.reduce(0, { $0 + $1.size }) <= limit else { throw Self.tooLarge }
        do {
            if case .full(let reason) = try await budget.reserve(blobs, patiently: true) {
                throw Task.isCancelled ? Failure.stopped() : Failure.cacheIsFull(reason)
            }
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(.diskError, "Space in the cache can't be reserved: \(error)")
        }
        return try await stored(blobs)
    }

    /// Copies files from memory to the cache, into space that is reserved already.
    private func stored(_ blobs: [PendingBlob]) async throws(Failure) -> [PendingBlob] {
        try await files.blocking { [cache = files.cache] () throws(Failure) in
            var copies: [PendingBlob] = []
            do throws(CacheError) {
                for blob in blobs {
                    let file = try cache.makeFile()
                    let reservation = blob.file.cacheReservation
                    file.reservation.withLock { $0 = reservation }
                    try blob.file.copy(to: file, size: blob.size)
                    copies.append(PendingBlob(file: file, hash: blob.hash, size: blob.size))
                }
            } catch {
                throw Failure(error)
            }
            return copies
        }
    }
}

extension Failure {
    /// A picture that cannot be decoded is the failure of the command that wrote it, not of the source.
    fileprivate func blaming(_ command: String) -> Failure {
        switch failureClass {
        case .notAnImage, .badImage, .truncated, .tooManyPixels, .decoderCrash:
            Failure(.delegate, "The answer of the command '\(command)' can't be used: \(message)")
        default: self
        }
    }
}
