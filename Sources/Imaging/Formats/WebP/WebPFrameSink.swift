internal import Core
import ImageFiles
import SystemPackage

/// Writes an animated WebP with libwebp's encoder, which holds all encoded frames until it ends.
///
/// So the sink ends it when so many pixels have changed that it may hold too much, and the next frame begins another
/// run. A run ends where the encoder would look for its next key frame anyway. A single run is the file that gif2webp
/// writes; several are hardly larger.
final class WebPFrameSink: FrameSink {
    private let size: PixelSize
    private let loopCount: Int
    private let settings: WebPFrameSettings
    private var file: WebPFile
    private var section: WebPSection?
    /// A still of the section's first frame if that does not cover the canvas; for all sections but the first.
    private var opening: EncodedFile?
    private var sections = 0
    /// The frame before.
    private let shown: PixelBuffer
    private var pace: WebPPace

    /// - Parameters:
    ///   - descriptor: of a regular file.
    ///   - loopCount: 0 means for ever; at most 65,535 is written.
    init(
        _ descriptor: FileDescriptor, size: PixelSize, loopCount: Int, _ settings: WebPFrameSettings,
        metadata: AnimationMetadata = AnimationMetadata(),
    ) throws(Failure) {
        self.size = size
        self.loopCount = min(max(0, loopCount), 65_535)
        self.settings = settings
        file = WebPFile(descriptor, size: size, loopCount: self.loopCount, metadata)
        shown = try PixelBuffer(size)
        pace = WebPPace(settings, canvas: size)
    }

    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure) {
        let changed = section == nil ? size.pixels : pixels.changed(since: shown)
        if let section, pace.isFull(before: changed) {
            try write(section)
            self.section = nil
            opening = pixels.fillsItsEdges ? nil : try still(pixels)
            pace = WebPPace(settings, canvas: size)
        }
        let section: WebPSection =
            if let begun = self.section { begun } else {
                try WebPSection(size: size, loopCount: loopCount, settings)
            }
        self.section = section
        try section.add(pixels, duration: duration)
        pace.take(changed)
        shown.copy(from: pixels)
    }

    func finish() throws(Failure) {
        guard let section else {
            throw Failure(.encode, "The animation has no frame to write.")
        }
        if sections == 0 {
            try section.finish { (part) throws(Failure) in try file.write(only: part) }
        } else {
            try write(section)
            try file.finish()
        }
    }

    private func write(_ section: WebPSection) throws(Failure) {
        try section.finish { (part) throws(Failure) in
            try file.append(part, whole: opening, duration: section.duration)
        }
        sections += 1
    }

    private func still(_ pixels: PixelBuffer) throws(Failure) -> EncodedFile {
        let encoder = WebPEncoder(size: size, hasAlpha: true, settings: settings.still)
        do throws(VipsFailure) {
            return try pixels.lend { (pixels) throws(VipsFailure) in try encoder.encode(UnsafeRawBufferPointer(pixels))
            }
        } catch {
            throw error.error(.encode, "A frame of the animation could not be encoded")
        }
    }
}
