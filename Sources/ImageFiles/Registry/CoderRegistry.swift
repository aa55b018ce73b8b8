/// The coders in order: the one that was registered last is asked first, and the built-in formats last.
///
/// A value: a program makes it once when it starts, and gives it to the worker and its helpers.
public struct CoderRegistry: Sendable {
    package private(set) var coders: [Coder]

    /// The built-in formats.
    public init() { coders = ImageFormat.allCases.map(Coder.builtIn) }

    /// Puts a coder before all others.
    public mutating func register(_ coder: some ImageCoder) {
        coders.append(.registered(coder))
    }

    /// The names of registered coders, which variants may name; sorted.
    public var registeredNames: [String] {
        coders.compactMap { if case .registered(let coder) = $0 { coder.name } else { nil } }.sorted()
    }

    /// The first coder that recognises these bytes, or nil.
    package func coder(for prefix: UnsafeRawBufferPointer) -> Coder? {
        let format = ImageFormat.sniff(prefix)
        return coders.last { coder in
            switch coder {
            case .builtIn(let candidate): candidate == format
            case .registered(let coder): coder.sniff(prefix)
            }
        }
    }

    /// The number of bytes after which every coder has decided.
    package var signatureLength: Int {
        coders.reduce(16) { longest, coder in
            switch coder {
            case .builtIn(let format): max(longest, format.header.signatureLength)
            case .registered(let coder): max(longest, coder.signatureLength)
            }
        }
    }
}

/// One place in the registry.
package enum Coder: Sendable {
    case builtIn(ImageFormat)
    case registered(any ImageCoder)
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
