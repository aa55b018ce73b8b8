internal import CWebP
internal import Core
import ImageFiles
internal import SystemPackage

/// Writes an animated WebP part by part; lengths that are known only at the end are written as zeros first and
/// overwritten then.
///
/// A part is a file of libwebp's encoder: an animation, or a still if it has one frame.
/// https://developers.google.com/speed/webp/docs/riff_container
struct WebPFile {
    private let descriptor: FileDescriptor
    private let size: PixelSize
    private let loopCount: Int
    private let metadata: AnimationMetadata
    /// The file's offset in the descriptor, once something was written.
    private var start: Int64?
    private var written = 0
    private var hasAlpha = false

    init(_ descriptor: FileDescriptor, size: PixelSize, loopCount: Int, _ metadata: AnimationMetadata) {
        self.descriptor = descriptor
        self.size = size
        self.loopCount = loopCount
        self.metadata = metadata
    }

    /// Writes the only part, unchanged if nothing must be added.
    func write(only part: UnsafeRawBufferPointer) throws(Failure) {
        guard !metadata.profile.isEmpty || !metadata.exif.isEmpty || !metadata.xmp.isEmpty else {
            return try output { try descriptor.writeAll(part) }
        }
        var file = self
        let chunks = WebPChunk.all(in: part)
        let isAnimation = chunks.contains { $0.name == "ANMF" }
        try file.begin(isAnimation: isAnimation)
        file.hasAlpha = chunks.contains(where: \.hasAlpha)
        for chunk in chunks where isAnimation ? chunk.name == "ANMF" : chunk.isPicture { try file.put(chunk) }
        try file.finish(isAnimation: isAnimation)
    }

    private mutating func begin(isAnimation: Bool) throws(Failure) {
        start = try output { try descriptor.seek(offset: 0, from: .current) }
        try put(Array("RIFF".utf8) + WebPChunk.little(0, 4) + Array("WEBP".utf8))
        try put("VP8X", [UInt8](repeating: 0, count: 10))
        if !metadata.profile.isEmpty { try put("ICCP", metadata.profile) }
        // White, libwebp's own background; it is never shown, since canvases are transparent.
        let loops = WebPChunk.little(min(max(0, loopCount), 65_535), 2)
        if isAnimation { try put("ANIM", [255, 255, 255, 255] + loops) }
    }

    /// Writes the frames of a part; other parts may come before and after it.
    ///
    /// - Parameters:
    ///   - whole: a still of its first frame, if that frame might not cover the canvas.
    ///   - duration: of the part, in milliseconds, if it is a still itself.
    mutating func append(_ part: UnsafeRawBufferPointer, whole: EncodedFile?, duration: Int) throws(Failure) {
        if start == nil { try begin(isAnimation: true) }
        let chunks = WebPChunk.all(in: part)
        hasAlpha = hasAlpha || chunks.contains(where: \.hasAlpha)
        var frames = chunks.filter { $0.name == "ANMF" }
        guard let first = frames.first else { return try putStill(chunks, duration: duration, flags: noBlend) }
        if let whole, let duration = first.reader.little(3, at: 12), let flags = first.reader.byte(at: 15) {
            try whole.lend { (file) throws(Failure) in
                try putStill(WebPChunk.all(in: file), duration: duration, flags: flags | noBlend)
            }
            frames.removeFirst()
        }
        for frame in frames { try put(frame) }
    }

    private var noBlend: UInt8 { 2 }

    /// Writes a frame of the canvas' size.
    private mutating func putStill(
        _ chunks: [WebPChunk], duration: Int, flags: UInt8,
    ) throws(Failure) {
        let parts = chunks.filter(\.isPicture)
        hasAlpha = hasAlpha || parts.contains(where: \.hasAlpha)
        let frame =
            WebPChunk.little(0, 6) + WebPChunk.little(size.width - 1, 3) + WebPChunk.little(size.height - 1, 3)
            + WebPChunk.little(min(duration, 1 << 24 - 1), 3) + [flags]
        let count = parts.reduce(frame.count) { $0 + 8 + $1.payload.count + $1.payload.count & 1 }
        try put(WebPChunk.header("ANMF", count) + frame)
        for part in parts { try put(part) }
    }

    /// Writes the chunks after all parts, and the lengths.
    mutating func finish(isAnimation: Bool = true) throws(Failure) {
        guard let start else { return }
        if !metadata.exif.isEmpty { try put("EXIF", metadata.exif) }
        if !metadata.xmp.isEmpty { try put("XMP ", metadata.xmp) }
        // RIFF's own field counts the bytes after it.
        guard written - 8 <= UInt32.max - 10 else {
            throw Failure(.encode, "The animated WebP would be larger than four gibibytes.")
        }
        let length = WebPChunk.little(written - 8, 4)
        let features = WebPChunk.little(features(isAnimation), 4)
        let sides = WebPChunk.little(size.width - 1, 3) + WebPChunk.little(size.height - 1, 3)
        try output {
            try descriptor.writeAll(toAbsoluteOffset: start + 4, length)
            try descriptor.writeAll(toAbsoluteOffset: start + 20, features + sides)
        }
    }

    private func features(_ isAnimation: Bool) -> Int {
        var flags: UInt32 = isAnimation ? ANIMATION_FLAG.rawValue : 0
        if hasAlpha { flags |= ALPHA_FLAG.rawValue }
        if !metadata.profile.isEmpty { flags |= ICCP_FLAG.rawValue }
        if !metadata.exif.isEmpty { flags |= EXIF_FLAG.rawValue }
        if !metadata.xmp.isEmpty { flags |= XMP_FLAG.rawValue }
        return Int(flags)
    }

    private mutating func put(_ chunk: WebPChunk) throws(Failure) {
        try put(WebPChunk.header(chunk.name, chunk.payload.count))
        try output { try descriptor.writeAll(chunk.payload) }
        written += chunk.payload.count
        if chunk.payload.count & 1 == 1 { try put([0]) }
    }

    private mutating func put(_ name: String, _ payload: [UInt8]) throws(Failure) {
        try put(WebPChunk.header(name, payload.count) + payload + (payload.count & 1 == 1 ? [0] : []))
    }

    private mutating func put(_ bytes: [UInt8]) throws(Failure) {
        try output { try descriptor.writeAll(bytes) }
        written += bytes.count
    }

    @discardableResult
    private func output<Result>(_ body: () throws -> Result) throws(Failure) -> Result {
        do {
            return try body()
        } catch {
            throw Failure(.encode, "The animated WebP could not be written: \(error)")
        }
    }
}
