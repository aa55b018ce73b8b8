/// Changes pictures in a way that isn't built in. Variants ask for it as `delegate:NAME:ARGUMENT`.
///
/// Runs in helper processes, one image at a time in each, so a crash costs one image.
public protocol ImageTransform: Sendable {
    /// 1 to 64 ASCII letters, digits, `.`, `_` and `-`.
    var name: String { get }
    /// Part of the identity of what is made: another version makes everything anew.
    var version: String { get }

    /// - Parameters:
    ///   - image: may come back in another size, within the limit of pixels.
    ///   - argument: what the variant says behind the name; empty where it says nothing. Written by whoever writes jobs.
    /// - Throws: any error; the item fails with class `delegate` and the error's description.
    func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage
}

/// What a program adds to the built-in coders and effects. Its worker and its helpers must be given the same.
public struct ImagingExtensions: Sendable {
    public var coders = CoderRegistry()
    private var transforms: [String: any ImageTransform] = [:]

    public init(coders: [any ImageCoder] = [], transforms: [any ImageTransform] = []) {
        for coder in coders { self.coders.register(coder) }
        for transform in transforms { register(transform) }
    }

    /// Takes the place of one of the same name.
    public mutating func register(_ transform: some ImageTransform) {
        transforms[transform.name] = transform
    }

    public func transform(named name: String) -> (any ImageTransform)? { transforms[name] }

    /// Sorted.
    public var transformNames: [String] { transforms.keys.sorted() }
}
