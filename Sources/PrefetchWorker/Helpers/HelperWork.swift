internal import ContentCache
internal import Core
internal import FoundationEssentials
internal import Imaging
internal import Jobs
internal import SystemPackage
import Variants

/// A helper's answer to one request.
enum HelperAnswer: Sendable {
    /// The facts, and a file for each variant, complete but not published.
    case made(TransformReport, [PendingBlob])
    /// The part of a picture that can be seen so far, and a file with it.
    case preview(PreviewReport?, BlobFile)
    /// A file would have come to more bytes than it may have.
    case outgrown
    /// Its facts alone don't say what it is.
    case undecided
}

/// How one exchange with a helper ended.
enum HelperExchange: Sendable {
    /// With the files it was given to write.
    case answered(HelperReply, [BlobFile])
    /// The files could not be made; no fault of the image.
    case disk(CacheError)
    case crashed
    case timedOut
}

/// A picture that effects name, such as a watermark.
struct Asset: Sendable {
    /// SHA-256 of its bytes: part of the identity of what it is used for.
    let hash: String
    let file: BlobFile
}

/// One image on its way through a helper.
struct HelperWork: Sendable {
    let source: BlobFile
    let variants: [VariantSpec]
    let assets: [String: Asset]
    let answer: CheckedContinuation<Result<HelperAnswer, Failure>, Never>
    var outputs = OutputPlace()
    /// What may be wrong with the source.
    var tolerance = DecodeTolerance()
    /// Asks for a preview of so many first bytes, and for nothing else.
    var preview: Int?
    /// Asks for the source's facts, and for nothing else.
    var isFactsOnly = false
    /// The item it is for, if it is for one.
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

    /// Whom two crashes are put down to: a transform of the program's own is likelier than a decoder that everybody uses.
    var culprit: (failure: FailureClass, name: String) {
        let names = variants.flatMap(\.transformNames)
        return names.isEmpty ? (.decoderCrash, "decoder") : (.delegate, "transform or the decoder")
    }

    /// Sends the request and waits for the answer. Blocks.
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
            // It is closed with its owner, which nothing below names.
            defer { withExtendedLifetime(source) {} }
            let pictures = names.compactMap { assets[$0]?.file.descriptor }
            let descriptors = [source.descriptor] + files.map(\.descriptor) + pictures
            guard send(try Array(JSONEncoder().encode(request)), descriptors, over: socket) else { return .crashed }
            guard try socket.wait(milliseconds: Int64(configuration.wallSeconds) * 1_000) else { return .timedOut }
            guard let (bytes, strays) = try socket.receive() else { return .crashed }
            // A helper has no business sending descriptors; one that was taken over by an image might.
            for stray in strays { try stray.close() }
            let reply = try HelperReply(json: bytes)
            return .answered(reply, files)
        } catch let error as CacheError {
            return .disk(error)
        } catch {
            // An answer that makes no sense comes from a helper that an image has broken; it isn't asked again.
            return .crashed
        }
    }

    /// - Returns: whether the helper was still there to receive it.
    private func send(_ bytes: [UInt8], _ descriptors: [FileDescriptor], over socket: DescriptorSocket) -> Bool {
        do {
            try socket.send(bytes, descriptors)
            return true
        } catch {
            return false
        }
    }

    private func isFull(_ cache: ContentCache) -> Bool {
        // If even this can't be read, the encoder's failure stands.
        ((try? cache.freeBytes()) ?? .max) < 1 << 20
    }

    /// The result of a reply, after reading the files that were written. Blocks.
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
        case .failed(let failure) where failure.failureClass == .encode && isFull(cache):
            // An encoder can't tell a full disk from any other failed write; the image is not to blame.
            return .failure(Failure(.diskFull, "The disk of \(cache.directory) is full."))
        case .failed(let failure):
            return .failure(failure)
        case .outgrown where outputs.most == nil:
            return .failure(Failure(.encode, "A variant would be larger than \(HelperMain.fileLimit) bytes."))
        case .outgrown:
            return .success(.outgrown)
        case .preview(let report):
            return .success(.preview(report, files[0]))
        case .facts:
            return .failure(Failure(.transform, "The helper answered what it wasn't asked."))
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

/// Where a helper's variants are written to, and how long each may get.
struct OutputPlace: Sendable {
    var isInMemory = false
    /// Bytes; nil for the helper's own limit.
    var most: Int64?

    func makeFile(in cache: ContentCache) throws(CacheError) -> BlobFile {
        try ScratchFiles(cache: cache, isInMemory: isInMemory).make()
    }
}
