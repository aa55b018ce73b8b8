internal import Core
import ImageFiles

// Checks a registered coder's answers against its header.

extension AnimationCoder {
    /// Nil for a still.
    func checkedAnimation(
        in bytes: UnsafeRawBufferPointer, _ header: ImageHeader,
    ) throws(Failure) -> AnimationFacts? {
        let found: AnimationHeader?
        do {
            found = try animation(in: bytes)
        } catch {
            throw failure(error, "The frames of the \(name) cannot be read")
        }
        guard let found else { return nil }
        guard found.frames > 0 else {
            throw Failure(.badImage, "The header of the \(name) says \(found.frames) frames.")
        }
        let canvas = PixelSize(width: header.width, height: header.height)
        return AnimationFacts(canvas: canvas, frames: found.frames, loopCount: min(max(0, found.loopCount), 65_535))
    }
}

extension ImageCoder {
    func checkedImage(
        of bytes: UnsafeRawBufferPointer, _ header: ImageHeader, limits: ImageLimits,
    ) throws(Failure) -> RGBAImage {
        let image: RGBAImage
        do {
            image = try decode(bytes, limits: limits)
        } catch {
            throw failure(error, "The \(name) cannot be decoded")
        }
        guard image.width == header.width, image.height == header.height else {
            throw Failure(
                .badImage,
                "The \(name) has \(image.width)×\(image.height) pixels, and its header says "
                    + "\(header.width)×\(header.height).")
        }
        return image
    }

    /// - Returns: nil if the coder does not write files.
    func checkedFile(of image: RGBAImage, quality: Int?) throws(Failure) -> [UInt8]? {
        do {
            return try encode(image, quality: quality)
        } catch {
            throw Failure(.encode, "The \(name) cannot be encoded: \(error)")
        }
    }
}
