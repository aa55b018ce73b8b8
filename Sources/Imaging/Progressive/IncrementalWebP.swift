internal import CWebP

/// What libwebp's incremental decoder makes of the first bytes of a still WebP.
/// https://developers.google.com/speed/webp/docs/api#incremental_decoding
struct IncrementalWebP {
    /// Rows from the top whose pixels are final.
    let rows: Int
    /// RGBA of those rows.
    let pixels: [UInt8]

    /// - Returns: nil before the first row is complete, and where the bytes can't be decoded.
    init?(_ bytes: UnsafeRawBufferPointer, width: Int) {
        guard let decoder = WebPINewRGB(MODE_RGBA, nil, 0, 0) else { return nil }
        defer { WebPIDelete(decoder) }
        let status = WebPIUpdate(decoder, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
        guard status == VP8_STATUS_OK || status == VP8_STATUS_SUSPENDED else { return nil }
        var last: CInt = 0
        var decodedWidth: CInt = 0
        var stride: CInt = 0
        guard let start = WebPIDecGetRGB(decoder, &last, &decodedWidth, nil, &stride), last > 0,
            Int(decodedWidth) == width
        else { return nil }
        rows = Int(last)
        pixels = (0..<Int(last)).flatMap { row in
            UnsafeBufferPointer(start: start + row * Int(stride), count: width * 4)
        }
    }
}
