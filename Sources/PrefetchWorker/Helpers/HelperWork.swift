internal import ContentCache
internal import FoundationEssentials
internal import Imaging
internal import Jobs
internal import SystemPackage

/// What came of asking for an image's variants.
enum HelperOutcome: Sendable {
    /// The facts, and a file for each variant, complete but not published.
    case made(TransformReport, [PendingBlob])
    /// What can be seen so far, and a file with it.
    case preview(PreviewReport?, BlobFile)
    case failed(FailureClass, String)
    /// The disk refused a file; no fault of the image.
    case disk(CacheError)
    /// A file would have come to more bytes than it may have.
    case outgrown
    /// No helper could be started; no fault of the image.
    case unavailable(String)
    /// Its facts alone don't say what it is.
    case undecided
    /// The pool is closed.
    case stopped
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

/// One image on its way through a helper.
struct HelperWork: Sendable {
    let source: BlobFile
    let variants: [VariantSpec]
    let assets: [String: Asset]
    let answer: CheckedContinuation<HelperOutcome, Never>
    var outputs = OutputPlace()
    /// What may be wrong with the source.
    var tolerance = DecodeTolerance()
    /// Asks for a preview of so many first bytes, and for nothing else.
    var preview: Int?
    /// Asks what the source is, and for nothing else.
    var isFactsOnly = false
    /// The item it is for, if it is for one.
    let item = ProcessTurns.item
    private(set) var crashes = 0

    init(
        source: BlobFile, variants: [VariantSpec], assets: [String: Asset],
        answer: CheckedContinuation<HelperOutcome, Never>,
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
        // If even this can't be read, the failure stays what the encoder said.
        ((try? cache.freeBytes()) ?? .max) < 1 << 20
    }

    /// What an answer means, after reading the files that were written. Blocks.
    func outcome(of reply: HelperReply, _ files: [BlobFile], in cache: ContentCache) -> HelperOutcome {
        do {
            return try judged(reply, files, in: cache)
        } catch {
            return .disk(error)
        }
    }

    private func judged(
        _ reply: HelperReply, _ files: [BlobFile], in cache: ContentCache,
    ) throws(CacheError) -> HelperOutcome {
        switch reply {
        case .failed(let error) where error.code == .encode && isFull(cache):
            // An encoder can't tell a full disk from any other failed write; the image is not to blame.
            return .disk(CacheError(.diskFull, "The disk of \(cache.directory) is full."))
        case .failed(let error):
            return .failed(FailureClass(error.code), error.message)
        case .outgrown where outputs.most == nil:
            return .failed(.encode, "A variant would be larger than \(HelperMain.fileLimit) bytes.")
        case .outgrown:
            return .outgrown
        case .preview(let report):
            return .preview(report, files[0])
        case .facts:
            return .failed(.transform, "The helper answered what it wasn't asked.")
        case .made(let report):
            guard report.renditions.count == files.count else {
                return .failed(.transform, "The helper made \(report.renditions.count) of \(files.count) variants.")
            }
            var blobs: [PendingBlob] = []
            for file in files {
                let blob = try PendingBlob(reading: file)
                guard blob.size > 0 else { return .failed(.encode, "The encoder wrote an empty file.") }
                blobs.append(blob)
            }
            return .made(report, blobs)
        }
    }
}

extension FailureClass {
    init(_ code: ImagingError.Code) {
        self =
            switch code {
            case .notAnImage: .notAnImage
            case .badImage: .badImage
            case .truncated: .truncated
            case .tooManyPixels: .tooManyPixels
            case .transform: .transform
            case .delegate: .delegate
            case .encode: .encode
            }
    }
}
