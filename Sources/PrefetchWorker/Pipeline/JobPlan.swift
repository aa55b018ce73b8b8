internal import ContentCache
internal import Imaging
internal import Jobs

/// A job's wishes, parsed once for all its items.
struct JobPlan: Sendable {
    let definition: JobDefinition
    let options: JobOptions
    let variants: [VariantSpec]

    /// - Throws: what is wrong with the job, as a sentence for `jobs.error`.
    init(_ definition: JobDefinition) throws(JobPlanError) {
        self.definition = definition
        do {
            options = try JobOptions(parsing: definition.options)
        } catch {
            throw JobPlanError(message: error.message)
        }
        do {
            variants = try VariantSpec.parseList(definition.variants)
        } catch {
            throw JobPlanError(message: "\(error)")
        }
    }

    var keepsOriginal: Bool { !options.contains(.discardOriginal) }
}

struct JobPlanError: Error {
    let message: String
}

/// The identity of a rendition: the same picture under many URLs is made once, and neither a refreshed source nor
/// another version of a coder can be answered with a stale one.
func variantIdentity(source: String, spec: VariantSpec, coder: String) -> String {
    BlobHash(of: "\(source)\n\(spec.canonical)\n\(coder)".utf8).hex
}
