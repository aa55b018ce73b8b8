internal import ContentCache
internal import Core
internal import Download
internal import ImageFiles
internal import Jobs
internal import Variants

/// Judges a picture like a downloaded one, and finds its place in the cache.
struct PictureJudge: Sendable {
    struct Judged: Sendable {
        let picture: StoredPicture
        /// The bytes; nil if the cache has them.
        let blob: PendingBlob?
        let change: CachedPicture.Change
    }

    private enum Target {
        case source
        /// The rendition that this URL has under the name.
        case name(String)
        case spec(VariantSpec)

        var name: String {
            switch self {
            case .source: CacheEntry.original
            case .name(let name): name
            case .spec(let spec): spec.name
            }
        }
    }

    private let index: CacheIndex
    private let files: SourceFiles
    private let helpers: HelperPool
    private let intake: PictureIntake
    private let assets: Assets
    private let identities: IdentitySource
    private let limits: OwnLimits
    private let redaction: Redaction
    private let now: @Sendable () -> WallTime

    init(
        _ configuration: WorkerConfiguration, store: JobStore, files: SourceFiles, helpers: HelperPool,
    ) throws {
        let extensions = configuration.extensions
        index = store.cache
        self.files = files
        self.helpers = helpers
        now = configuration.now
        redaction = configuration.redaction
        limits = OwnLimits(
            maxBodyBytes: configuration.downloads.maxBodyBytes, maxCacheBytes: configuration.cachePolicy.maxBytes,
            images: configuration.images)
        intake = PictureIntake(
            files: files, inspector: HeaderInspector(limits: configuration.images, coders: extensions.coders),
            limit: configuration.downloads.maxBodyBytes)
        assets = Assets(
            directory: configuration.assets, redaction: redaction, store: store, cache: files.cache,
            reading: files.reading)
        identities = IdentitySource(
            program: helpers.program,
            delegates: DelegateVersions(extensions, try configuration.commands.map { try InstalledCommand($0) }))
    }

    /// - Parameter isNew: whether to take the bytes even if the cache has them.
    /// - Throws: why the picture is refused.
    func judge(_ picture: NewPicture, isNew: Bool = false) async throws(Failure) -> Judged {
        // A line of a list that can't be read has no URL.
        if case .refused(let failure) = picture.content { throw failure }
        do throws(Failure) {
            try check(url: picture.url)
            let target = try Self.target(picture.variant)
            let place: PicturePlace
            do throws(JobsError) {
                place = try await index.place(ofURL: picture.url, variant: target.name)
            } catch {
                throw Failure(error)
            }
            guard case .source = target else { return try await variant(picture, target, place) }
            return try await source(picture, place, isNew: isNew)
        } catch {
            throw limits.explained(error)
        }
    }

    /// - Throws: `invalid-url` for a text that no job can fetch.
    private func check(url: String) throws(Failure) {
        let scheme = url.prefix { $0 != ":" }
        let isScheme =
            scheme.utf8.count < url.utf8.count && scheme.first?.isASCII == true && scheme.first?.isLetter == true
            && scheme.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
        guard isScheme else {
            throw Failure(
                .invalidURL,
                "'\(redaction.shown(url).prefix(100))' is no URL: it begins with no scheme, such as https:.")
        }
        let isWeb = ["http", "https"].contains(scheme.lowercased())
        guard !isWeb || Downloader.host(of: url) != nil else {
            throw Failure(.invalidURL, "'\(redaction.shown(url).prefix(100))' is no URL that can be fetched.")
        }
    }

    private static func target(_ variant: String?) throws(Failure) -> Target {
        guard let variant, variant != CacheEntry.original else { return .source }
        let specs: [VariantSpec]
        do throws(VariantSpecError) {
            // The width is a placeholder, since a spec cannot be empty; only the name is used.
            guard variant.contains(where: { "={[".contains($0) }) else {
                return .name(try VariantSpec(name: variant, width: 1).name)
            }
            specs = try VariantSpec.parseList(variant)
        } catch {
            throw Failure(.invalidItem, "\(error)")
        }
        guard let spec = specs.first, specs.count == 1 else {
            throw Failure(.invalidItem, "These are \(specs.count) variants; a file stands for one.")
        }
        return .spec(spec)
    }

    // MARK: - Sources

    private func source(
        _ picture: NewPicture, _ place: PicturePlace, isNew: Bool,
    ) async throws(Failure) -> Judged {
        let known = isNew ? nil : place.source.flatMap { isWhole($0, place.entry) ? $0 : nil }
        switch try await intake.take(picture, known: known) {
        case .known(let known):
            var stored = StoredPicture(key: place.key, source: known, rendition: Self.rendition(of: known))
            stored.isKnown = true
            return Judged(picture: stored, blob: nil, change: .cached)
        case .new(let blob):
            var source = SourceRecord(
                key: place.key, hash: blob.hash.hex, size: blob.size, isKept: true, fetchedAt: now())
            source = try await decoded(source, blob)
            return Judged(
                picture: StoredPicture(key: place.key, source: source, rendition: Self.rendition(of: source)),
                blob: blob, change: change(place.entry, blob))
        }
    }

    /// Whether the cache has a source's bytes and knows that all of them can be decoded.
    private func isWhole(_ source: SourceRecord, _ entry: CacheEntry?) -> Bool {
        guard source.isKept, source.frames != nil, !source.isDamaged, let entry, entry.blob == source.hash,
            entry.format == source.format, let hash = BlobHash(source.hash)
        else { return false }
        return files.cache.exists(hash, size: source.size)
    }

    private static func rendition(of source: SourceRecord) -> RenditionRecord {
        RenditionRecord(
            name: CacheEntry.original, blob: source.hash, size: source.size, format: source.format ?? "unknown",
            width: source.width, height: source.height)
    }

    /// The source with the facts of its pixels: those that the index has of the same bytes, or a helper's.
    private func decoded(_ source: SourceRecord, _ blob: PendingBlob) async throws(Failure) -> SourceRecord {
        do throws(JobsError) {
            if let known = try await index.source(ofBytes: source.hash), !known.isDamaged {
                var source = source
                source.takeFacts(from: known)
                return source
            }
        } catch {
            throw Failure(error)
        }
        guard case .made(let report, _) = try await helpers.facts(of: blob.file).get() else { throw .stopped() }
        return source.with(report.facts)
    }

    // MARK: - Variants

    private func variant(
        _ picture: NewPicture, _ target: Target, _ place: PicturePlace,
    ) async throws(Failure) -> Judged {
        guard case .new(let blob) = try await intake.take(picture, known: nil) else { throw .stopped() }
        let made = try await decoded(
            SourceRecord(key: place.key, hash: blob.hash.hex, size: blob.size, isKept: true, fetchedAt: now()), blob)
        let rendition = RenditionRecord(
            name: target.name, blob: made.hash, size: made.size, format: made.format ?? "unknown", width: made.width,
            height: made.height)
        var stored = StoredPicture(key: place.key, source: nil, rendition: rendition)
        if case .spec(let spec) = target {
            stored.variants = [try await record(of: spec, rendition, place)]
        } else {
            stored.variants = place.variants.map { $0.replaced(by: rendition) }
        }
        return Judged(picture: stored, blob: blob, change: change(place.entry, blob))
    }

    /// The index's record of a rendition that stands for a spec.
    ///
    /// - Throws: `filtered` if its format is not the spec's; `not-cached` if the URL has no source.
    private func record(
        of spec: VariantSpec, _ rendition: RenditionRecord, _ place: PicturePlace,
    ) async throws(Failure) -> VariantRecord {
        if let format = spec.format, format.rawValue != rendition.format {
            throw Failure(
                .filtered, "The file is \(rendition.format), and the variant '\(spec.name)' is \(format.rawValue).")
        }
        guard let source = place.source else {
            throw Failure(
                .notCached,
                "A variant belongs to a source, and the cache has none of this URL. Store or fetch the source first, or "
                    + "give the variant's name alone.")
        }
        if let objection = identities.delegates.objection(to: [spec]) { throw Failure(.delegate, objection) }
        let assets = try await assets.open(spec.assetNames)
        let naming = try await identities.identities()
        return VariantRecord(
            identity: naming.identity(of: spec, source, assets), source: source.hash, spec: spec.canonical,
            coder: naming.coder, blob: rendition.blob, size: rendition.size, format: rendition.format,
            width: rendition.width ?? 0, height: rendition.height ?? 0)
    }

    private func change(_ entry: CacheEntry?, _ blob: PendingBlob) -> CachedPicture.Change {
        guard let entry else { return .stored }
        return entry.blob == blob.hash.hex ? .cached : .replaced
    }
}

extension VariantRecord {
    /// The same rendition with another file.
    fileprivate func replaced(by file: RenditionRecord) -> VariantRecord {
        VariantRecord(
            identity: identity, source: source, spec: spec, coder: coder, blob: file.blob, size: file.size,
            format: file.format, width: file.width ?? 0, height: file.height ?? 0)
    }
}
