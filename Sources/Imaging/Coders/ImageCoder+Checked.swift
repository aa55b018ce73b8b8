// A registered coder's answers, held to what it promised.

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

    private func failure(_ error: any Error, _ what: String) -> ImagingError {
        (error as? ImagingError) ?? ImagingError(code: .badImage, message: "\(what): \(error)")
    }
}
