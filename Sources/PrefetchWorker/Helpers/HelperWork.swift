internal import ContentCache
internal import Core
internal import FoundationEssentials
internal import HelperProtocol
internal import ImageFiles
internal import Jobs
internal import SystemPackage
import Variants

/// A helper's answer to one request.
enum HelperAnswer: Sendable {
    /// The facts, and a complete but unpublished file for each variant.
    case made(TransformReport, [PendingBlob])
    /// The visible part of a picture, and a file with it.
    case preview(PreviewReport?, BlobFile)
    /// A file would have exceeded its limit.
    case outgrown
    /// A request for facts alone cannot describe the source.
    case undecided
}

/// How one exchange with a helper ended.
enum HelperExchange: Sendable {
    /// With the files that the helper was given to write.
    case answered(HelperReply, [BlobFile])
    /// The files could not be made; the image is not at fault.
    case disk(CacheError)
    case crashed
    case timedOut
}

/// Another picture that effects name, such as a watermark.
struct Asset: Sendable {
    /// SHA-256 of its bytes, which is part of the identity of renditions that use it.
    let hash: String
    let file: BlobFile
}

/// One request to a helper.
struct HelperWork: Sendable {
    let source: BlobFile
    let variants: [VariantSpec]
    let assets: [String: Asset]
    let answer: CheckedContinuation<Result<HelperAnswer, Failure>, Never>
    var outputs = OutputTarget()
    /// The damage to accept in the source.
    var tolerance = DecodeTolerance()
    /// Requests a preview of this many first bytes, and nothing else.
    var preview: Int?
    /// Requests the source's facts, and nothing else.
    var isFactsOnly = false
    /// The item that it is for, if there is one.
    let item = ProcessTurns.item
    private(set) var crashes = 0

    init(
        source: BlobFile, variants: [VariantSpec], assets: [String: Asset],
        answer: CheckedContinuation<Result<HelperAnswer, Failure>, Never>,
    ) {
        self.source = source
        self.variants = variants
        self.assets = assets
        self.answer = answer
    }

    func afterCrash() -> HelperWork {
        var work = self
        work.crashes += 1
        return work
    }

    /// The failure for two crashes: a registered transform is a likelier cause than a widely used decoder.
    var culprit: (failure: FailureClass, name: String) {
        let names = variants.flatMap(\.transformNames)
        return names.isEmpty ? (.decoderCrash, "decoder") : (.delegate, "transform or the decoder")
    }

    /// Sends the request and waits for the reply. Blocks.
    func exchange(
        over socket: DescriptorSocket, cache: ContentCache, limits: ImageLimits, configuration: HelperConfiguration,
    ) -> HelperExchange {
        do {
            let count = preview == nil ? variants.count : 1
            let files = try (0..<count).map { _ in try outputs.makeFile(in: cache) }
            let names = assets.keys.sorted()
            var request = HelperRequest(
                limits: limits, variants: variants, assets: names, preview: preview,
                seconds: configuration.processorSeconds)
            request.fileBytes = outputs.most
            request.tolerance = tolerance
            let source = try source.openedForReading()
            // Keeps the owner alive to the end of the scope: its descriptor is closed with it.
            defer { withExtendedLifetime(source) {} }
            let pictures = names.compactMap { assets[$0]?.file.descriptor }
            let descriptors = [source.descriptor] + files.map(\.descriptor) + pictures
            let text = try Array(JSONEncoder().encode(request))
            guard try socket.reaches(text, descriptors) else { return .crashed }
            guard try socket.wait(milliseconds: Int64(configuration.wallSeconds) * 1_000) else { return .timedOut }
            guard let (bytes, strays) = try socket.receive() else { return .crashed }
            // A helper sends no descriptors, unless an image has taken it over.
            for stray in strays { try stray.close() }
            let reply = try HelperReply(json: bytes)
            return .answered(reply, files)
        } catch let error as CacheError {
            return .disk(error)
        } catch {
            // A helper with an invalid reply was broken by an image; it gets no more requests.
            return .crashed
        }
    }

    /// The result of a reply, with the files that were written. Blocks.
    func outcome(of reply: HelperReply, _ files: [BlobFile], in cache: ContentCache) -> Result<HelperAnswer, Failure> {
        do {
            return try decodeReply(reply, files, in: cache)
        } catch {
            return .failure(Failure(error))
        }
    }

    private func decodeReply(
        _ reply: HelperReply, _ files: [BlobFile], in cache: ContentCache,
    ) throws(CacheError) -> Result<HelperAnswer, Failure> {
        switch reply {
        case .failed(let failure) where failure.failureClass == .encode && !outputs.isInMemory && cache.isFull():
            return .failure(Failure(.diskFull, "The disk of \(cache.directory) is full."))
        case .failed(let failure):
            return .failure(failure)
        case .outgrown where outputs.most == nil:
            return .failure(Failure(.encode, "A variant would be larger than \(HelperBounds.file) bytes."))
        case .outgrown:
            return .success(.outgrown)
        case .preview(let report):
            return .success(.preview(report, files[0]))
        case .facts:
            return .failure(Failure(.transform, "The helper's reply does not match the request."))
        case .made(let report):
            guard report.renditions.count == files.count else {
                return .failure(
                    Failure(.transform, "The helper made \(report.renditions.count) of \(files.count) variants."))
            }
            var blobs: [PendingBlob] = []
            for file in files {
                let blob = try PendingBlob(reading: file)
                guard blob.size > 0 else { return .failure(Failure(.encode, "The encoder wrote an empty file.")) }
                blobs.append(blob)
            }
            return .success(.made(report, blobs))
        }
    }
}

/// Where a helper writes variants, and the maximum size of each.
struct OutputTarget: Sendable {
    var isInMemory = false
    /// Bytes; nil for the helper's own limit.
    var most: Int64?

    func makeFile(in cache: ContentCache) throws(CacheError) -> BlobFile {
        try ScratchFiles(cache: cache, isInMemory: isInMemory).make()
    }
}
