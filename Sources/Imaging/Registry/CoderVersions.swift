public import ImageFiles

extension CoderRegistry {
    /// A coder in the list, as `worker doctor` shows it.
    public struct Listing: Hashable, Sendable {
        /// The format's name.
        public let name: String
        public let mediaType: String
        /// Without the dot.
        public let fileExtension: String
        /// The libraries that decode it: `vips 8.14.1`, or the coder's own version.
        public let version: String
    }

    /// In the order in which they are asked.
    public var listing: [Listing] { coders.reversed().map(\.listing) }

    /// The versions that determine a rendition's bytes besides its source and spec; part of the identity under which it
    /// is cached.
    public var version: String {
        let registered = coders.compactMap { coder in
            if case .registered(let coder) = coder { "\(coder.name) \(coder.version)" } else { nil }
        }
        // A change of a built-in decoder raises the pipeline's number. BMP's version has always been listed separately.
        return ([ImagingRuntime.coderVersion, "bmp 1"] + registered).joined(separator: " ")
    }

    /// The coder that was registered last under this name.
    func coder(named name: String) -> (any ImageCoder)? {
        for case .registered(let coder) in coders.reversed() where coder.name == name { return coder }
        return ImageFormat(rawValue: name)?.definition.coder(takesBeginning: false)
    }
}

extension Coder {
    fileprivate var listing: CoderRegistry.Listing {
        switch self {
        case .builtIn(let format):
            CoderRegistry.Listing(
                name: format.rawValue, mediaType: format.mediaType, fileExtension: format.fileExtension,
                version: Self.version(of: format.definition))
        case .registered(let coder):
            CoderRegistry.Listing(
                name: coder.name, mediaType: coder.mediaType, fileExtension: coder.fileExtension,
                version: coder.version)
        }
    }

    private static func version(of format: any FormatDefinition) -> String {
        if let coder = format.coder(takesBeginning: false) { return coder.version }
        let versions = ImagingRuntime.versions
        return format.libraries.compactMap { name in
            versions.first { $0.name == name }.map { "\(name) \($0.version)" }
        }
        .joined(separator: ", ")
    }
}
