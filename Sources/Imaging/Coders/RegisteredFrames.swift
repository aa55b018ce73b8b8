internal import Core
import ImageFiles
internal import SystemPackage

/// A registered coder's animation, checked against its header.
final class RegisteredFrameSource: FrameSource {
    let canvas: PixelSize
    let loopCount: Int
    let frameCount: Int
    private let name: String
    private let reader: any AnimationReader
    private let shown: PixelBuffer
    private var given = 0

    /// - Throws: class `too-many-pixels` before anything is allocated.
    init(
        _ coder: any AnimationCoder, _ facts: AnimationFacts, bytes: UnsafeRawBufferPointer, limits: ImageLimits,
    ) throws(Failure) {
        try facts.check(limits)
        name = coder.name
        canvas = facts.canvas
        loopCount = facts.loopCount
        frameCount = facts.frames
        do {
            reader = try coder.reader(of: bytes, limits: limits)
        } catch {
            throw coder.failure(error, "The \(coder.name) cannot be decoded")
        }
        shown = try PixelBuffer(facts.canvas)
    }

    func next() throws(Failure) -> AnimationFrame? {
        let frame: ImageFrame?
        do {
            frame = try reader.next()
        } catch {
            throw (error as? Failure)
                ?? Failure(.badImage, "A frame of the \(name) cannot be decoded: \(error)")
        }
        guard let frame else {
            guard given == frameCount else { throw wrong("has \(given) frames", "\(frameCount)") }
            return nil
        }
        let size = PixelSize(width: frame.image.width, height: frame.image.height)
        guard size == canvas else {
            throw wrong("has a frame of \(size.width)×\(size.height)", "\(canvas.width)×\(canvas.height)")
        }
        // A reader that never ends would keep the helper busy.
        guard given < frameCount else { throw wrong("has more frames", "\(frameCount)") }
        given += 1
        frame.image.pixels.withUnsafeBufferPointer { if let start = $0.baseAddress { shown.copy(from: start) } }
        return AnimationFrame(shown, lasting: max(0, frame.duration))
    }

    private func wrong(_ what: String, _ promised: String) -> Failure {
        Failure(.badImage, "The \(name) \(what), and its header says \(promised).")
    }
}

/// Writes an animation with a registered coder.
final class RegisteredFrameSink: FrameSink {
    private let name: String
    private let size: PixelSize
    private let writer: any AnimationWriter
    private let descriptor: FileDescriptor

    /// Nil if the coder does not write animations.
    init?(
        _ coder: any AnimationCoder, _ descriptor: FileDescriptor, size: PixelSize, loopCount: Int, quality: Int?,
    ) throws(Failure) {
        do {
            guard
                let writer = try coder.writer(
                    width: size.width, height: size.height, loopCount: loopCount, quality: quality)
            else { return nil }
            self.writer = writer
        } catch {
            throw Failure(.encode, "The \(coder.name) cannot be encoded: \(error)")
        }
        name = coder.name
        self.size = size
        self.descriptor = descriptor
    }

    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure) {
        let bytes = pixels.lend { Array(UnsafeRawBufferPointer($0)) }
        guard let image = RGBAImage(width: size.width, height: size.height, pixels: bytes) else {
            throw Failure(.encode, "A frame of the \(name) has no pixels.")
        }
        try encoding { try writer.add(ImageFrame(image: image, duration: duration)) }
    }

    func finish() throws(Failure) {
        try encoding { _ = try descriptor.writeAll(try writer.finish()) }
    }

    private func encoding(_ body: () throws -> Void) throws(Failure) {
        do {
            try body()
        } catch {
            throw Failure(.encode, "The \(name) cannot be encoded: \(error)")
        }
    }
}
