import Core
import ImageFiles

/// A picture in 16 bytes of header and four numbers of 16 bits a pixel: https://tools.suckless.org/farbfeld/
struct Farbfeld: ImageCoder {
    let name = "farbfeld"
    let version = "1"
    let mediaType = "image/x-farbfeld"
    let fileExtension = "ff"
    let signatureLength = 8

    func sniff(_ prefix: UnsafeRawBufferPointer) -> Bool { prefix.starts(with: Self.signature) }

    func header(of prefix: UnsafeRawBufferPointer) throws -> ImageHeader? {
        guard prefix.count >= 16 else { return nil }
        return ImageHeader(width: Self.number(prefix[8..<12]), height: Self.number(prefix[12..<16]), hasAlpha: true)
    }

    func decode(_ bytes: UnsafeRawBufferPointer, limits: ImageLimits) throws -> RGBAImage {
        // The limits were asked with the header, so this multiplication can't overflow.
        guard let header = try header(of: bytes), (bytes.count - 16) / 8 >= header.width * header.height else {
            throw Failure(.truncated, "The farbfeld ends before its picture does.")
        }
        let count = header.width * header.height * 4
        let pixels = (0..<count).map { bytes[16 + 2 * $0] }
        guard let image = RGBAImage(width: header.width, height: header.height, pixels: pixels) else {
            throw Failure(.badImage, "The farbfeld has no pixels.")
        }
        return image
    }

    func encode(_ image: RGBAImage, quality: Int?) throws -> [UInt8]? {
        Self.signature + Self.bytes(image.width) + Self.bytes(image.height) + image.pixels.flatMap { [$0, $0] }
    }

    private static let signature = Array("farbfeld".utf8)

    private static func number(_ bytes: Slice<UnsafeRawBufferPointer>) -> Int {
        bytes.reduce(0) { $0 << 8 | Int($1) }
    }

    private static func bytes(_ number: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}
