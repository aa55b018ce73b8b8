internal import ContentCache
internal import Download
internal import Imaging
internal import Jobs

/// A job's wishes, parsed once for all its items, which share it.
final class JobPlan: Sendable {
    let definition: JobDefinition
    let options: JobOptions
    let settings: JobSettings
    let variants: [VariantSpec]
    /// The pictures that the variants' effects name.
    let assetNames: Set<String>
    /// Whether its requests say more of who asks than those of other jobs.
    var asksForItself: Bool { !definition.headers.isEmpty }

    /// Whether what a URL is listed for holds for others, but perhaps not for this job.
    func asksOtherwise(than entry: BlacklistEntry) -> Bool {
        if asksForItself, entry.failure.isAboutWhoAsks { return true }
        if tolerance.acceptsDamage, [.badImage, .truncated].contains(entry.failure) { return true }
        return options.contains(.allowInvalidCertificates) && entry.failure == .tlsCertificate
    }

    /// - Throws: what is wrong with the job, as a sentence for `jobs.error`.
    init(_ definition: JobDefinition) throws(JobPlanError) {
        self.definition = definition
        if let problem = definition.problem { throw JobPlanError(message: problem) }
        do {
            options = try JobOptions(parsing: definition.options)
            settings = try JobSettings(parsing: definition.options)
        } catch {
            throw JobPlanError(message: error.message)
        }
        do throws(DownloadFailure) {
            try HeaderRules.check(definition.headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) })
        } catch {
            throw JobPlanError(message: error.message)
        }
        do {
            let defaults = options.variantDefaults
            variants = try VariantSpec.parseList(definition.variants).map { try $0.with(defaults) }
            assetNames = variants.reduce(into: []) { $0.formUnion($1.assetNames) }
        } catch {
            throw JobPlanError(message: "\(error)")
        }
    }

    var keepsOriginal: Bool { !options.contains(.discardOriginal) }

    /// Whether a source has to be decoded before its item is done.
    var decodes: Bool { !options.contains(.avoidDecodeImage) || !variants.isEmpty }

    /// Whether this job can't take a source for whole that another one did.
    func hasToSee(_ source: SourceRecord) -> Bool {
        decodes && (source.isUnseen || source.isDamaged && !tolerance.acceptsDamage)
    }

    /// What may be wrong with a source.
    var tolerance: DecodeTolerance {
        DecodeTolerance(
            firstFrameSuffices: options.contains(.decodeFirstFrameOnly),
            acceptsDamage: options.contains(.acceptDamaged))
    }

    /// Whether what is known of a source is enough for a job that makes nothing of it.
    func isSatisfied(with source: SourceRecord) -> Bool {
        source.format != nil && !hasToSee(source)
    }
}

extension JobOptions {
    /// What a job says of all its variants.
    fileprivate var variantDefaults: Set<VariantOption> {
        let pairs: [(JobOptions, VariantOption)] = [
            (.decodeFirstFrameOnly, .decodeFirstFrameOnly), (.transformAnimatedImage, .transformAnimatedImage),
            (.scaleDownLargeImages, .scaleDownLargeImages),
        ]
        return Set(pairs.filter { contains($0.0) }.map(\.1))
    }
}

struct JobPlanError: Error {
    let message: String
}

/// The identity of a rendition: the same picture under many URLs is made once, and neither a refreshed source nor
/// another version of a coder can be answered with a stale one.
///
/// - Parameters:
///   - assets: the pictures that its effects name, which count by their bytes and not by their names.
///   - delegates: the transforms and commands that its effects name, which count by their versions.
func variantIdentity(
    source: String, spec: VariantSpec, coder: String, assets: [String: Asset] = [:],
    delegates: DelegateVersions = DelegateVersions(),
) -> String {
    let pictures = spec.assetNames.sorted().map { "\n\($0)=\(assets[$0]?.hash ?? "")" }.joined()
    return BlobHash(of: "\(source)\n\(spec.canonical)\n\(coder)\(pictures)\(delegates.identity(of: spec))".utf8).hex
}
