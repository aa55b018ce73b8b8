internal import CVips
internal import Core
import ImageFiles
internal import SystemPackage
import Variants

/// Writes JPEG XL: stills by libvips, animations by libjxl.
struct JXLSaver: FormatSaver {
    func bytesPerPixel(_ encoding: Encoding, effort: Int, hasAlpha: Bool) -> Int {
        Self.bytesPerPixel(isLossless: encoding.isLossless, effort: effort, hasAlpha: hasAlpha)
    }

    /// libjxl searches for repeated patterns from effort 7 on (lossless: from 5 on), most of all in drawings and plain
    /// areas.
    static func bytesPerPixel(isLossless: Bool, effort: Int, hasAlpha: Bool) -> Int {
        if isLossless { return effort <= 4 ? 113 : hasAlpha ? 280 : 250 }
        return switch effort {
        case ...6: hasAlpha ? 115 : 80
        case 7: hasAlpha ? 280 : 250
        default: hasAlpha ? 380 : 330
        }
    }

    func usualEffort(pixels: Int) -> Int { pixels > Self.largePicture ? 3 : 7 }

    /// Pixels from which effort 3 is used, which needs a third of the memory: see ``EncoderMemory``.
    private static let largePicture = 3_500_000

    /// Below this quality libvips asks libjxl for a distance above 25, which libjxl refuses, and the file has the
    /// default's size.
    static let lowestQuality = 5

    func save(_ picture: Picture, _ encoding: Encoding, to target: UnsafeMutablePointer<VipsTarget>) -> CInt {
        let quality = CInt(max(encoding.quality, Self.lowestQuality))
        let effort = encoding.effort(for: picture)
        return picture.lend {
            pw_vips_save_jxl($0, target, quality, effort, encoding.losesNothing, picture.strip)
        }
    }

    func file(of picture: Picture, _ encoding: Encoding) throws(VipsFailure) -> EncodedFile {
        let file = try EncodedFile { save(picture, encoding, to: $0) }
        let exif = picture.exifBlock
        let xmp = picture.withBlob(VIPS_META_XMP_NAME) { Array($0) }
        return exif == nil && xmp == nil ? file : Self.file(file, exif?.bytes, xmp)
    }

    /// Further boxes can be appended to a file that has boxes already.
    private static func file(_ encoded: EncodedFile, _ exif: [UInt8]?, _ xmp: [UInt8]?) -> EncodedFile {
        let boxes = JXLContainer.metadata(exif, xmp)
        guard encoded.lend({ ByteReader($0).has([0xFF, 0x0A], at: 0) }) else {
            return EncodedFile(encoded, by: [], tail: boxes)
        }
        return EncodedFile(encoded, by: JXLContainer.beginning + boxes + JXLContainer.boxHeader("jxlc", encoded.count))
    }

    func animated(_ spec: VariantSpec) -> (any AnimationSaver)? { JXLAnimationSaver(spec) }
}

/// The boxes around a codestream. ISO/IEC 18181-2: a signature, the file type, metadata, and the codestream.
enum JXLContainer {
    static var beginning: [UInt8] {
        box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + box("ftyp", Array("jxl ".utf8) + [0, 0, 0, 0] + Array("jxl ".utf8))
    }

    /// The EXIF box begins with the offset of its header.
    static func metadata(_ exif: [UInt8]?, _ xmp: [UInt8]?) -> [UInt8] {
        (exif.map { box("Exif", [0, 0, 0, 0] + $0) } ?? []) + (xmp.map { box("xml ", $0) } ?? [])
    }

    /// The header of the file's last box, which ends where the file does.
    static var codestreamToTheEnd: [UInt8] { [0, 0, 0, 0] + Array("jxlc".utf8) }

    static func boxHeader(_ name: String, _ count: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(8 + count).bigEndian) { Array($0) } + Array(name.utf8)
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        boxHeader(name, content.count) + content
    }
}

/// Writes animations as stills are written: with libvips' distance for a quality, and efforts 3 to 9.
private struct JXLAnimationSaver: AnimationSaver {
    let strength: Int
    let weakest: Int?
    let holdsProfile = true
    private let isLossless: Bool
    private let effort: Int?

    /// Measured with libjxl 0.7, one thread, on a film of 500×279.
    private static let efforts = AnimationEfforts(slowness: [3: 2, 4: 3, 5: 4, 6: 5, 7: 8, 8: 60, 9: 120], usual: 7)

    init(_ spec: VariantSpec) {
        isLossless = spec.options.flag(.lossless)
        effort = spec.options.whole(.effort)
        let quality = spec.quality ?? VariantSpec.Output.jxl.defaultQuality ?? 75
        (strength, weakest) = (quality, isLossless ? nil : JXLSaver.lowestQuality)
    }

    func slowness(_ outline: AnimationOutline) -> Int { Self.efforts.slowness(effort, for: outline) }

    func begin(
        _ output: FileDescriptor, _ outline: AnimationOutline, strength: Int, _ metadata: AnimationMetadata,
    ) throws(Failure) -> any FrameSink {
        try Self.efforts.check(outline, "jxl")
        let effort = Self.efforts.effort(effort, for: outline)
        let bytes = JXLSaver.bytesPerPixel(isLossless: isLossless, effort: effort, hasAlpha: true)
        try EncoderMemory.check("jxl", outline.size, bytesPerPixel: bytes)
        let settings = JXLFrameSettings(quality: isLossless ? nil : strength, effort: effort)
        return try JXLFrameSink(output, outline, settings, metadata: metadata)
    }
}
