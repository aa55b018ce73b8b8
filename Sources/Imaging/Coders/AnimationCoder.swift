internal import Core

/// A coder whose files may move. ``ImageCoder/decode(_:limits:)`` gives their first frame.
///
/// Frames are handled one at a time, so that memory doesn't grow with their number; all of it runs in helper processes.
public protocol AnimationCoder: ImageCoder {
    /// What is known of an animation without decoding a pixel; nil for a file that stands still.
    ///
    /// - Throws: any error for a file that can't be right, as ``ImageCoder/header(of:)``.
    func animation(in bytes: UnsafeRawBufferPointer) throws -> AnimationHeader?

    /// Opens an animation for reading from its first frame on. The header was held to `limits` before.
    ///
    /// - Parameter bytes: stay where they are as long as the reader lives.
    func reader(of bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> any AnimationReader

    /// Begins an animation of this format.
    ///
    /// - Parameters:
    ///   - loopCount: how often it plays; 0 is for ever.
    ///   - quality: 1 to 100, or nil where the variant doesn't say.
    /// - Returns: nil where animations of this format aren't written.
    func writer(width: Int, height: Int, loopCount: Int, quality: Int?) throws -> (any AnimationWriter)?
}

extension AnimationCoder {
    public func writer(width: Int, height: Int, loopCount: Int, quality: Int?) throws -> (any AnimationWriter)? { nil }
}

/// What a coder found of an animation. Its canvas is the ``ImageHeader``'s.
public struct AnimationHeader: Hashable, Sendable {
    /// At least 1.
    public var frames: Int
    /// How often it plays; 0 is for ever.
    public var loopCount: Int

    public init(frames: Int, loopCount: Int) {
        self.frames = frames
        self.loopCount = loopCount
    }
}

/// One frame as a viewer sees it: the whole canvas, composed.
public struct ImageFrame: Sendable {
    public var image: RGBAImage
    /// In milliseconds; 10 and less are taken for 100, as browsers do.
    public var duration: Int

    public init(image: RGBAImage, duration: Int) {
        self.image = image
        self.duration = duration
    }
}

/// An animation that is read once, from its first frame to its last. Asked from one thread.
public protocol AnimationReader: AnyObject {
    /// - Throws: class `truncated` where the bytes end within the frame; anything else but an ``Failure`` is
    ///   `bad-image`.
    /// - Returns: nil after the last frame.
    func next() throws -> ImageFrame?
}

/// An animation that is written once. Asked from one thread.
public protocol AnimationWriter: AnyObject {
    /// - Throws: any error; the variant fails with class `encode`.
    func add(_ frame: ImageFrame) throws

    /// - Returns: the whole file.
    func finish() throws -> [UInt8]
}
