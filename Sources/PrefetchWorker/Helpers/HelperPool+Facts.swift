internal import ContentCache
internal import Core
internal import Dispatch
internal import FoundationEssentials
internal import HelperProtocol
internal import ImageFiles
internal import SystemPackage

/// Requests the facts of many sources in one message. A source that is only stored needs no more, and for a small one
/// the message costs more than decoding.
extension HelperPool {
    /// Maximum sources of a message; a helper gets its share of the waiting ones.
    static let factsGroup = 32

    /// The facts of a source. Large, animated and undecodable sources get a request of their own, without variants.
    func facts(of source: BlobFile, tolerance: DecodeTolerance = DecodeTolerance()) async -> Result<
        HelperAnswer, Failure
    > {
        let outcome = await turns.waiting {
            await withCheckedContinuation { continuation in
                var work = HelperWork(source: source, variants: [], assets: [:], answer: continuation)
                work.isFactsOnly = true
                if !put(work) { continuation.resume(returning: .failure(.stopped())) }
            }
        }
        guard case .success(.undecided) = outcome else { return outcome }
        return await transform(source, into: [], tolerance: tolerance)
    }

    /// - Returns: the number of sources in the message; nil if the helper cannot continue.
    func askFacts(_ first: HelperWork, of helper: RunningHelper, on thread: DispatchQueue) async -> Int? {
        let group = [first] + takeFactsOnly()
        for work in group { turns.start(work.item) }
        let isAnswered = await withCheckedContinuation { continuation in
            thread.async { [self, socket = helper.socket] in
                continuation.resume(returning: answer(group, over: socket))
            }
        }
        if !isAnswered {
            // Each source is then sent in a request of its own, which shows the source at fault.
            helper.kill()
            if !connections.areCut { noteDeath() }
            for work in group { work.answer.resume(returning: .success(.undecided)) }
            return nil
        }
        return group.count
    }

    /// Blocks.
    private func answer(_ group: [HelperWork], over socket: DescriptorSocket) -> Bool {
        guard let replies = replies(to: group, over: socket), replies.count == group.count else { return false }
        for (work, reply) in zip(group, replies) {
            switch reply {
            case .facts(let facts):
                work.answer.resume(
                    returning: .success(.made(TransformReport(facts: facts, renditions: []), [])))
            case .undecided:
                work.answer.resume(returning: .success(.undecided))
            }
        }
        return true
    }

    private func replies(to group: [HelperWork], over socket: DescriptorSocket) -> [FactsReply]? {
        do {
            let sources = try group.map { try $0.source.openedForReading() }
            // Keeps the owners alive to the end of the scope: their descriptors are closed with them.
            defer { withExtendedLifetime(sources) {} }
            var request = HelperRequest(
                limits: limits, variants: [], assets: [], seconds: configuration.processorSeconds)
            request.factsOnly = true
            try socket.send(Array(JSONEncoder().encode(request)), sources.map(\.descriptor))
            guard try socket.wait(milliseconds: Int64(configuration.wallSeconds) * 1_000) else { return nil }
            guard let (bytes, strays) = try socket.receive() else { return nil }
            for stray in strays { try stray.close() }
            guard case .facts(let replies) = try HelperReply(json: bytes) else {
                return nil
            }
            return replies
        } catch {
            // Each source is then sent in a request of its own, whose reply has the reason.
            return nil
        }
    }
}
