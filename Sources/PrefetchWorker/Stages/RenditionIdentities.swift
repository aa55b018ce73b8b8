internal import ContentCache
internal import Core
internal import Imaging
internal import Jobs
internal import Variants

/// The identity of renditions: the same picture under many URLs is made once, and neither a refreshed source nor another
/// version of a coder can be answered with an old one.
struct RenditionIdentities: Sendable {
    /// The versions of the coders.
    var coder: String
    /// The transforms and commands that effects name, which count by their versions.
    var delegates = DelegateVersions()

    /// - Parameter assets: the pictures that its effects name, which count by their bytes and not by their names.
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
