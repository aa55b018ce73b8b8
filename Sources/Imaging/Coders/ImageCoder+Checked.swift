// A registered coder's answers, held to what it promised.

extension AnimationCoder {
    /// Nil for a file that stands still.
    func checkedAnimation(
        in bytes: UnsafeRawBufferPointer, _ header: ImageHeader,
    ) throws(ImagingError) -> AnimationFacts? {
        let found: AnimationHeader?
        do {
            found = try animation(in: bytes)
        } catch {
            throw failure(error, "The \(name) can't be right")
        }
        guard let found else { return nil }
        guard found.frames > 0 else {
            throw ImagingError(code: .badImage, message: "The \(name) says that it has \(found.frames) frames.")
        }
        let canvas = PixelSize(width: header.width, height: header.height)
        return AnimationFacts(canvas: canvas, frames: found.frames, loopCount: min(max(0, found.loopCount), 65_535))
    }
}

extension ImageCoder {
    /// Nil while more bytes are needed.
    func checkedHeader(
        of prefix: UnsafeRawBufferPointer, limits: ImageLimits,
    ) throws(ImagingError) -> ImageHeader? {
        let found: ImageHeader?
        do {
            found = try header(of: prefix)
        } catch {
            throw failure(error, "The header of the \(name) can't be right")
        }
        if let found, let objection = limits.objection(width: found.width, height: found.height) { throw objection }
        return found
    }

    func checkedImage(
        of bytes: UnsafeRawBufferPointer, _ header: ImageHeader, limits: ImageLimits,
    ) throws(ImagingError) -> RGBAImage {
        let image: RGBAImage
        do {
            image = try decode(bytes, limits: limits)
        } catch {
            throw failure(error, "The \(name) cannot be decoded")
        }
        guard image.width == header.width, image.height == header.height else {
            throw ImagingError(
                code: .badImage,
                message: "The \(name) has \(image.width)×\(image.height) pixels, and its header says "
                    + "\(header.width)×\(header.height).")
        }
        return image
    }

    /// - Returns: nil where the format isn't written.
    func checkedFile(of image: RGBAImage, quality: Int?) throws(ImagingError) -> [UInt8]? {
        do {
            return try encode(image, quality: quality)
        } catch {
            throw ImagingError(code: .encode, message: "The \(name) cannot be encoded: \(error)")
        }
    }

    func failure(_ error: any Error, _ what: String) -> ImagingError {
        (error as? ImagingError) ?? ImagingError(code: .badImage, message: "\(what): \(error)")
    }
}
