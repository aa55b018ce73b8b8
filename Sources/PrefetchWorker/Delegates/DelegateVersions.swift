internal import ImageFiles
import Variants

/// The transforms, commands and coders that variants may name besides the built-in ones, and their versions.
struct DelegateVersions: Sendable {
    var transforms: [String: String] = [:]
    var commands: [String: String] = [:]
    /// The versions of registered coders; they are part of every rendition's identity, like the built-in coders'
    /// versions.
    var coders: [String] = []

    init() {}

    init(_ extensions: ImagingExtensions, _ commands: [InstalledCommand]) {
        for name in extensions.transformNames { transforms[name] = extensions.transform(named: name)?.version }
        coders = extensions.coders.registeredNames
        for command in commands { self.commands[command.name] = command.version }
    }

    /// Why this worker cannot make these variants, as a sentence; nil if it can.
    func objection(to variants: [VariantSpec]) -> String? {
        for variant in variants {
            if let name = variant.coderName, !coders.contains(name) {
                return "Variant '\(variant.name)' names the coder '\(name)'; this worker has "
                    + (coders.isEmpty ? "none of its own." : "\(coders.joined(separator: ", ")).")
            }
            if let name = variant.transformNames.sorted().first(where: { transforms[$0] == nil }) {
                return "Variant '\(variant.name)' names the transform '\(name)'; this worker has "
                    + (transforms.isEmpty ? "none." : "\(transforms.keys.sorted().joined(separator: ", ")).")
            }
            if let name = variant.commandNames.sorted().first(where: { commands[$0] == nil }) {
                return "Variant '\(variant.name)' names the command '\(name)'; this worker has "
                    + (commands.isEmpty
                        ? "none: see --transform-command." : "\(commands.keys.sorted().joined(separator: ", ")).")
            }
        }
        return nil
    }

    /// The versions that are part of a variant's identity.
    func identity(of variant: VariantSpec) -> String {
        let used = variant.transformNames.sorted().map { "\ndelegate \($0)=\(transforms[$0] ?? "")" }
        return (used + variant.commandNames.sorted().map { "\ncommand \($0)=\(commands[$0] ?? "")" }).joined()
    }
}
