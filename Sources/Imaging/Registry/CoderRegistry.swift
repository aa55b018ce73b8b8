/// The coders in order: the one that was registered last is asked first, and the built-in formats last.
///
/// A value: a program makes it once when it starts, and gives it to the worker and its helpers.
public struct CoderRegistry: Sendable {
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

    private var coders: [Coder]

    /// The built-in formats.
    public init() { coders = ImageFormat.allCases.map(Coder.builtIn) }

    /// Puts a coder before all others.
    public mutating func register(_ coder: some ImageCoder) {
        coders.append(.registered(coder))
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

    /// The names of registered coders, which variants may name; sorted.
    public var registeredNames: [String] {
        coders.compactMap { if case .registered(let coder) = $0 { coder.name } else { nil } }.sorted()
    }

    /// The coder that was registered last under this name.
    func coder(named name: String) -> (any ImageCoder)? {
        for case .registered(let coder) in coders.reversed() where coder.name == name { return coder }
        return ImageFormat(rawValue: name)?.definition.coder(takesBeginning: false)
    }

    /// The first coder that recognises these bytes, or nil.
    func coder(for prefix: UnsafeRawBufferPointer) -> Coder? {
        let format = ImageFormat.sniff(prefix)
        return coders.last { coder in
            switch coder {
            case .builtIn(let candidate): candidate == format
            case .registered(let coder): coder.sniff(prefix)
            }
        }
    }

    /// The number of bytes after which every coder has decided.
    var signatureLength: Int {
        coders.reduce(16) { longest, coder in
            switch coder {
            case .builtIn(let format): max(longest, format.definition.signatureLength)
            case .registered(let coder): max(longest, coder.signatureLength)
            }
        }
    }
}

/// One place in the registry.
enum Coder: Sendable {
    case builtIn(ImageFormat)
    case registered(any ImageCoder)

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

/// Changes pictures in a way that is not built in. Variants name it as `delegate:NAME:ARGUMENT`.
///
/// Runs in helper processes, one image at a time in each, so a crash costs one image.
public protocol ImageTransform: Sendable {
    /// 1 to 64 ASCII letters, digits, `.`, `_` and `-`.
    var name: String { get }
    /// Part of every rendition's identity: a new version makes new renditions.
    var version: String { get }

    /// - Parameters:
    ///   - image: the result may have another size, within the limit of pixels.
    ///   - argument: the variant's text after the name; may be empty. The author of the job writes it.
    /// - Throws: any error; the item fails with class `delegate` and the error's description.
    func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage
}

/// The coders and effects that a program adds to the built-in ones. Its worker and its helpers must get the same.
public struct ImagingExtensions: Sendable {
    public var coders = CoderRegistry()
    private var transforms: [String: any ImageTransform] = [:]

    public init(coders: [any ImageCoder] = [], transforms: [any ImageTransform] = []) {
        for coder in coders { self.coders.register(coder) }
        for transform in transforms { register(transform) }
    }

    /// Replaces a transform of the same name.
    public mutating func register(_ transform: some ImageTransform) {
        transforms[transform.name] = transform
    }

    public func transform(named name: String) -> (any ImageTransform)? { transforms[name] }

    /// Sorted.
    public var transformNames: [String] { transforms.keys.sorted() }
}
