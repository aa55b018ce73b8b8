internal import CVips
internal import CZlib
internal import Core
import ImageFiles
internal import SystemPackage

/// Writes an animated PNG: the rectangle of each frame that changes, drawn over the shown picture if that makes
/// the data smaller.
///
/// All pixels are kept exactly, as red, green, blue and alpha of eight bits: a file has one pixel format, and whether a
/// later frame has an alpha is not known at its beginning.
final class PNGFrameSink: FrameSink {
    private let descriptor: FileDescriptor
    private let size: PixelSize
    private let loopCount: Int
    private let metadata: AnimationMetadata
    private let shown: PixelBuffer
    /// The offset of the number of frames, once something was written.
    private var header: Int64?
    private var frames = 0
    private var sequence = 0

    /// - Parameters:
    ///   - descriptor: of a regular file.
    ///   - loopCount: 0 means for ever.
    init(
        _ descriptor: FileDescriptor, size: PixelSize, loopCount: Int,
        metadata: AnimationMetadata = AnimationMetadata(),
    ) throws(Failure) {
        self.descriptor = descriptor
        self.size = size
        self.loopCount = min(max(0, loopCount), Int(Int32.max))
        self.metadata = metadata
        shown = try PixelBuffer(size)
    }

    func add(_ pixels: PixelBuffer, duration: Int) throws(Failure) {
        if frames == 0 { try begin() }
        let isFirst = frames == 0
        let change = PixelChange(from: shown, to: pixels, isFirst: isFirst)
        var (data, isBlended) = (try Self.data(of: change.pixels()), false)
        if !isFirst, let ink = try change.ink() {
            let smaller = try Self.data(of: ink)
            if smaller.count < data.count { (data, isBlended) = (smaller, true) }
        }
        try put(control(change.rectangle, duration: duration, isBlended: isBlended))
        try put(isFirst ? PNGChunk.bytes("IDAT", data) : PNGChunk.bytes("fdAT", numbered(data)))
        frames += 1
        shown.copy(from: pixels)
    }

    func finish() throws(Failure) {
        guard let header else {
            throw Failure(.encode, "The animation has no frame to write.")
        }
        try put(PNGChunk.bytes("IEND", []))
        let animation = animation
        try output { try descriptor.writeAll(toAbsoluteOffset: header, animation) }
    }

    private func begin() throws(Failure) {
        let start = try output { try descriptor.seek(offset: 0, from: .current) }
        let head =
            PNGHeader.signature
            + PNGChunk.bytes("IHDR", PNGChunk.big(size.width, 4) + PNGChunk.big(size.height, 4) + [8, 6, 0, 0, 0])
        header = start + Int64(head.count)
        try put(head + animation)
        if !metadata.profile.isEmpty {
            try put(PNGChunk.bytes("iCCP", Array("ICC".utf8) + [0, 0] + compressed(metadata.profile)))
        }
        if !metadata.exif.isEmpty { try put(PNGChunk.bytes("eXIf", metadata.exif)) }
        if !metadata.xmp.isEmpty {
            try put(PNGChunk.bytes("iTXt", Array("XML:com.adobe.xmp".utf8) + [0, 0, 0, 0, 0] + metadata.xmp))
        }
    }

    private var animation: [UInt8] {
        PNGChunk.bytes("acTL", PNGChunk.big(frames, 4) + PNGChunk.big(loopCount, 4))
    }

    private func control(_ part: PixelRectangle, duration: Int, isBlended: Bool) -> [UInt8] {
        let places = [part.width, part.height, part.left, part.top].flatMap { PNGChunk.big($0, 4) }
        // In thousandths of a second; hundredths if it is too long for that; otherwise seconds.
        let (parts, whole) =
            duration <= 65_535
            ? (duration, 1_000) : duration <= 655_350 ? (duration / 10, 100) : (min(duration / 1_000, 65_535), 1)
        return PNGChunk.bytes(
            "fcTL", numbered(places) + PNGChunk.big(parts, 2) + PNGChunk.big(whole, 2) + [0, isBlended ? 1 : 0])
    }

    private func numbered(_ content: [UInt8]) -> [UInt8] {
        defer { sequence += 1 }
        return PNGChunk.big(sequence, 4) + content
    }

    // MARK: - Pixels

    /// The data that libpng writes for a rectangle, without the chunks around it.
    private static func data(of part: PixelBuffer) throws(Failure) -> [UInt8] {
        // Filters make photographs smaller and drawings larger.
        let isDrawing = part.lend { ColourTable(of: $0) != nil }
        let picture = try part.picture()
        do throws(VipsFailure) {
            let file = try EncodedFile { target in
                picture.lend { pw_vips_save_png_frame($0, target, isDrawing ? 0 : 1) }
            }
            return file.lend { bytes in
                let reader = ByteReader(bytes)
                var data: [UInt8] = []
                var offset = PNGHeader.signature.count
                while let chunk = PNGChunk(at: offset, reader) {
                    if chunk.name == "IDAT" { data += bytes[chunk.content] }
                    offset = chunk.end
                }
                return data
            }
        } catch {
            throw error.error(.encode, "A frame of the animation could not be encoded")
        }
    }

    private func compressed(_ bytes: [UInt8]) throws(Failure) -> [UInt8] {
        var count = compressBound(UInt(bytes.count))
        let data = [UInt8](unsafeUninitializedCapacity: Int(count)) { room, filled in
            filled = compress(room.baseAddress, &count, bytes, UInt(bytes.count)) == Z_OK ? Int(count) : 0
        }
        guard !data.isEmpty else {
            throw Failure(.encode, "There is no memory for the colour profile.")
        }
        return data
    }

    private func put(_ bytes: [UInt8]) throws(Failure) { try output { _ = try descriptor.writeAll(bytes) } }

    @discardableResult
    private func output<Result>(_ body: () throws -> Result) throws(Failure) -> Result {
        do {
            return try body()
        } catch {
            throw Failure(.encode, "The animated PNG could not be written: \(error)")
        }
    }
}
