internal import Core

/// A coder for a format that may be animated. ``ImageCoder/decode(_:limits:)`` returns the first frame.
///
/// Frames are handled one at a time, so that memory does not grow with their number. All calls run in helper processes.
public protocol AnimationCoder: ImageCoder {
    /// The facts of an animation, found without decoding a pixel; nil for a still.
    ///
    /// - Throws: any error for an invalid file, as ``ImageCoder/header(of:)``.
    func animation(in bytes: UnsafeRawBufferPointer) throws -> AnimationHeader?

    /// Opens an animation for reading from its first frame on. Its header was checked against `limits` before.
    ///
    /// - Parameter bytes: valid as long as the reader exists.
    func reader(of bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> any AnimationReader

    /// Begins an animation of this format.
    ///
    /// - Parameters:
    ///   - loopCount: how often it plays; 0 means for ever.
    ///   - quality: 1 to 100, or nil if the variant names none.
    /// - Returns: nil if the coder does not write animations.
    func writer(width: Int, height: Int, loopCount: Int, quality: Int?) throws -> (any AnimationWriter)?
}

extension AnimationCoder {
    public func writer(width: Int, height: Int, loopCount: Int, quality: Int?) throws -> (any AnimationWriter)? { nil }
}

/// The facts of an animation. Its canvas is the ``ImageHeader``'s.
public struct AnimationHeader: Hashable, Sendable {
    /// At least 1.
    public var frames: Int
    /// How often it plays; 0 means for ever.
    public var loopCount: Int

    public init(frames: Int, loopCount: Int) {
        self.frames = frames
        self.loopCount = loopCount
    }
}

/// One frame as a viewer shows it: the whole canvas, composed.
public struct ImageFrame: Sendable {
    public var image: RGBAImage
    /// In milliseconds; 10 and less become 100, as in browsers.
    public var duration: Int

    public init(image: RGBAImage, duration: Int) {
        self.image = image
        self.duration = duration
    }
}

/// Reads an animation once, from its first frame to its last. Called from one thread.
public protocol AnimationReader: AnyObject {
    /// - Throws: class `truncated` if the bytes end within the frame; any error other than a ``Failure`` is
    ///   `bad-image`.
    /// - Returns: nil after the last frame.
    func next() throws -> ImageFrame?
}

/// Writes an animation once. Called from one thread.
public protocol AnimationWriter: AnyObject {
    /// - Throws: any error; the variant fails with class `encode`.
    func add(_ frame: ImageFrame) throws

    /// - Returns: the whole file.
    func finish() throws -> [UInt8]
}
