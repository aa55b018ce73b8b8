internal import ContentCache
internal import Core
internal import HelperProtocol
internal import ImageFiles
internal import Jobs
internal import Variants

/// The identity of renditions. The same picture at many URLs has the same identity and is rendered once; a changed
/// source or another version of a coder gives a new identity.
struct RenditionIdentities: Sendable {
    /// The versions of the coders.
    var coder: String
    /// The transforms and commands that effects name; their versions are part of the identity.
    var delegates = DelegateVersions()

    /// - Parameter assets: the other pictures that its effects name; their bytes are part of the identity, their names
    ///   are not.
    func identity(of spec: VariantSpec, _ source: SourceRecord, _ assets: [String: Asset]) -> String {
        identity(of: spec, source: source.hash, coder: source.isDamaged ? coder + " damaged" : coder, assets)
    }

    func identity(
        of spec: VariantSpec, source: String, coder: String? = nil, _ assets: [String: Asset] = [:],
    ) -> String {
        let pictures = spec.assetNames.sorted().map { "\n\($0)=\(assets[$0]?.hash ?? "")" }.joined()
        let text = "\(source)\n\(spec.canonical)\n\(coder ?? self.coder)\(pictures)\(delegates.identity(of: spec))"
        return BlobHash(of: text.utf8).hex
    }

    func record(
        of spec: VariantSpec, _ rendition: Rendition, _ blob: PendingBlob, _ source: SourceRecord,
        _ assets: [String: Asset],
    ) -> VariantRecord {
        VariantRecord(
            identity: identity(of: spec, source, assets), source: source.hash, spec: spec.canonical, coder: coder,
            blob: blob.hash.hex, size: blob.size, format: rendition.formatName, width: rendition.width,
            height: rendition.height)
    }
}

/// Makes the identities of a run, as soon as the versions of the helpers' libraries are known.
struct IdentitySource: Sendable {
    let program: HelperProgram
    /// The transforms and commands that effects name; their versions are part of the identity.
    let delegates: DelegateVersions

    func identities() async throws(Failure) -> RenditionIdentities {
        RenditionIdentities(coder: try await program.description().coder, delegates: delegates)
    }

    /// The same for a job, which needs no versions if it has no variants.
    func identities(for plan: JobPlan) async throws(Failure) -> RenditionIdentities {
        guard !plan.variants.isEmpty else { return RenditionIdentities(coder: "", delegates: delegates) }
        return try await identities()
    }
}
