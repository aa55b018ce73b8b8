internal import ContentCache
internal import Core
internal import Dispatch
internal import HelperProtocol
internal import ImageFiles
internal import Jobs
internal import Logging
internal import Synchronization
import Variants

/// Helper processes that decode, transform and encode, one image at a time each.
///
/// A decoder that crashes or never ends costs one image and one helper. After a crash the pool tries the image once
/// more in a fresh helper, since the cause may have been a `kill`. After a second crash, or if a helper takes too long,
/// the image fails as `decoder-crash`, or as `transform` if the picture can be decoded as long as no variant is made.
final class HelperPool: Sendable {
    let configuration: HelperConfiguration
    let limits: ImageLimits
    let logger: Logger
    private let cache: ContentCache
    let queue = WorkQueue<HelperWork>()
    private let budget: MemoryBudget
    /// Each helper has at most one result on it.
    private let results = DispatchQueue(label: "helper.results", attributes: .concurrent)
    private let estimates = DispatchQueue(label: "helper.estimates")
    /// Whether a log line has said that helpers are not fully sandboxed.
    let hasWarned = Mutex(false)
    let connections = HelperConnections()
    /// Helpers that died, or were killed because they took too long.
    let deaths = Atomic<Int64>(0)
    let busy = Atomic<Int>(0)
    let turns: ProcessTurns
    let program: HelperProgram

    init(configuration: HelperConfiguration, limits: ImageLimits, cache: ContentCache, logger: Logger) {
        self.configuration = configuration
        program = HelperProgram(configuration)
        self.limits = limits
        self.cache = cache
        self.logger = logger
        budget = MemoryBudget(bytes: configuration.decoderBytes)
        turns = ProcessTurns(.helper, slots: configuration.count, memory: budget)
    }

    /// Makes every variant of a source, in the given order.
    ///
    /// - Parameter assets: the other pictures that the variants' effects name.
    func transform(
        _ source: BlobFile, into variants: [VariantSpec], assets: [String: Asset] = [:],
        outputs: OutputTarget = OutputTarget(), tolerance: DecodeTolerance = DecodeTolerance(),
    ) async -> Result<HelperAnswer, Failure> {
        let outcome = await transformOnce(source, into: variants, assets, outputs, tolerance)
        guard case .failure(let crash) = outcome, crash.failureClass == .decoderCrash, !variants.isEmpty else {
            return outcome
        }
        // The decoder or the variants may have killed the helpers. To find out, the picture is decoded without
        // variants. If this succeeds, the variants are at fault; if it fails, the item gets this failure.
        let alone = await transformOnce(source, into: [], [:], OutputTarget(), tolerance)
        guard case .success = alone else { return alone }
        return .failure(
            Failure(
                .transform,
                "The picture can be decoded, but its variants can't be made with \(HelperBounds.memory >> 20) MiB and "
                    + "\(configuration.processorSeconds) s of CPU; ask for smaller or cheaper ones."))
    }

    private func transformOnce(
        _ source: BlobFile, into variants: [VariantSpec], _ assets: [String: Asset], _ outputs: OutputTarget,
        _ tolerance: DecodeTolerance,
    ) async -> Result<HelperAnswer, Failure> {
        await turns.waiting {
            await budget.holding(await decoderBytes(of: source)) {
                await withCheckedContinuation { continuation in
                    var work = HelperWork(source: source, variants: variants, assets: assets, answer: continuation)
                    work.outputs = outputs
                    work.tolerance = tolerance
                    if !queue.put(work) { continuation.resume(returning: .failure(.stopped())) }
                }
            }
        }
    }

    /// The memory that a decoder needs for this picture; 0 for an unreadable picture, whose error the decoder reports.
    private func decoderBytes(of source: BlobFile) async -> Int {
        await withCheckedContinuation { continuation in
            estimates.async { [limits] in
                continuation.resume(returning: DecoderEstimate(limits: limits).bytes(source.descriptor))
            }
        }
    }

    /// Runs the helpers until `close()`; returns when the last of them has ended.
    func run() async {
        await withTaskGroup { group in
            for _ in 0..<configuration.count {
                group.addTask { await self.serve() }
            }
        }
    }

    func put(_ work: HelperWork) -> Bool { queue.put(work) }

    func takeFactsOnly() -> [HelperWork] {
        queue.takeAvailable(min(Self.factsGroup - 1, queue.count / configuration.count)) { $0.isFactsOnly }
    }

    func noteDeath() { deaths.add(1, ordering: .relaxed) }

    /// Accepts no more images; the helpers end after the waiting ones.
    func close() { queue.close() }

    /// Fails all waiting and running images as stopped.
    func abandon() {
        connections.cut()
        for work in queue.abandon() { work.answer.resume(returning: .failure(.stopped())) }
    }

    /// One slot of the pool: starts a helper for the first image, and replaces it when it has died or is worn out.
    private func serve() async {
        let thread = DispatchQueue(label: "helper")
        let slot = HelperSlot()
        while await slot.fill(from: queue) {
            do {
                try await withHelper { helper in
                    // A helper that an attacker has taken over might not end by itself.
                    defer { helper.kill() }
                    self.connections.opened(helper.socket)
                    defer { self.connections.closed(helper.socket) }
                    try await self.greet(helper, on: thread)
                    await self.feed(from: slot, to: helper, on: thread)
                }
            } catch  where connections.areCut {
                slot.take()?.answer.resume(returning: .failure(.stopped()))
            } catch {
                logger.error("A helper can't be started.", metadata: ["error": "\(error)"])
                slot.take()?.answer.resume(
                    returning: .failure(HelperProgram.failure(error, configuration)))
                // Best effort (cancellation only shortens it): a lack of memory does not end within milliseconds.
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// Gives the helper images until it must be replaced. An image to try again after a crash stays in the slot.
    private func feed(from slot: HelperSlot, to helper: RunningHelper, on thread: DispatchQueue) async {
        var images = 0
        repeat {
            // A function of its own, so that no image, with its open files, is held while the slot waits for the next.
            guard await serveOne(from: slot, to: helper, on: thread, &images) else { return }
        } while await slot.fill(from: queue)
    }

    /// - Returns: whether the helper may get another image.
    private func serveOne(
        from slot: HelperSlot, to helper: RunningHelper, on thread: DispatchQueue, _ images: inout Int,
    ) async -> Bool {
        guard let work = slot.take() else { return true }
        busy.add(1, ordering: .relaxed)
        defer { busy.subtract(1, ordering: .relaxed) }
        turns.start(work.item)
        if work.isFactsOnly {
            guard let count = await askFacts(work, of: helper, on: thread) else { return false }
            images += count
            return !isWornOut(helper, images: images, memory: 0)
        }
        let (exchange, memory) = await self.exchange(work, with: helper, on: thread)
        switch exchange {
        case .answered(let reply, let files):
            // The helper gets its next image while the files of this one are read.
            results.async { [cache] in work.answer.resume(returning: work.outcome(of: reply, files, in: cache)) }
        case .disk(let error):
            work.answer.resume(returning: .failure(Failure(error)))
        case .crashed where connections.areCut, .timedOut where connections.areCut:
            work.answer.resume(returning: .failure(.stopped()))
            return false
        case .crashed where work.crashes == 0:
            noteDeath()
            logger.warning(
                "A helper died; its image is tried once more.", metadata: work.item.map { ["item": "\($0)"] })
            slot.put(work.afterCrash())
            return false
        case .crashed:
            noteDeath()
            let (failure, name) = work.culprit
            work.answer.resume(returning: .failure(Failure(failure, "The \(name) crashed twice on this image.")))
            return false
        case .timedOut:
            noteDeath()
            helper.kill()
            let (failure, name) = work.culprit
            let message = "The \(name) took longer than \(configuration.wallSeconds) s on this image."
            work.answer.resume(returning: .failure(Failure(failure, message)))
            return false
        }
        images += 1
        return !isWornOut(helper, images: images, memory: memory)
    }

    /// Decided between two images, so that replacing a helper loses none.
    private func isWornOut(_ helper: RunningHelper, images: Int, memory: Int) -> Bool {
        guard images >= configuration.recycleAfterImages || memory > configuration.recycleAboveBytes else {
            return false
        }
        logger.debug(
            "A helper is replaced.",
            metadata: ["pid": "\(helper.process)", "images": "\(images)", "memory": "\(memory >> 20) MiB"])
        return true
    }

    /// - Returns: how the exchange ended, and the memory that the helper held after it, in bytes.
    private func exchange(
        _ work: HelperWork, with helper: RunningHelper, on thread: DispatchQueue,
    ) async -> (HelperExchange, memory: Int) {
        // Waiting for a helper blocks, so it runs on this slot's own thread.
        await withCheckedContinuation { continuation in
            thread.async { [self, process = helper.process, socket = helper.socket] in
                let exchange = work.exchange(
                    over: socket, cache: cache, limits: limits, configuration: configuration)
                continuation.resume(returning: (exchange, ProcessMemory.own(by: process) ?? 0))
            }
        }
    }
}
