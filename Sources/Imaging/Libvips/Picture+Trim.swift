internal import CVips

extension Picture {
    /// Without the border that is like the top left pixel. A picture that is nothing but border stays as it is.
    ///
    /// libvips' own search takes what is one pixel wide for noise, and needs three pixels a side.
    func trimmed(threshold: Double) throws(VipsFailure) -> Picture {
        guard let area = try content(threshold: threshold) else { return self }
        return try then {
            pw_vips_crop(
                $0, &$1, CInt(area.columns.lowerBound), CInt(area.rows.lowerBound), CInt(area.columns.count),
                CInt(area.rows.count))
        }
    }

    /// What differs from the top left pixel by more than `threshold`, in alpha or in a colour. Colours are weighed by their
    /// alpha: what can't be seen has none.
    private func content(threshold: Double) throws(VipsFailure) -> Content? {
        let weighed = hasAlpha ? try then { pw_vips_premultiply($0, &$1) }.inBytes() : self
        let (size, bands) = (storedSize, bands)
        return try weighed.withPixels { Content(of: $0, size, bands: bands, threshold: Int(threshold)) }
    }
}

/// The smallest rectangle that has all pixels which are unlike the first.
private struct Content {
    let rows: Range<Int>
    let columns: Range<Int>

    /// Nil where all are alike.
    ///
    /// - Parameter threshold: of whole steps; a difference that is no more is none.
    init?(of pixels: UnsafeRawBufferPointer, _ size: PixelSize, bands: Int, threshold: Int) {
        func isUnlike(_ x: Int, _ y: Int) -> Bool {
            let place = (y * size.width + x) * bands
            return (0..<bands).contains { abs(Int(pixels[place + $0]) - Int(pixels[$0])) > threshold }
        }
        func hasContent(_ y: Int) -> Bool { (0..<size.width).contains { isUnlike($0, y) } }
        guard let top = (0..<size.height).first(where: hasContent),
            let bottom = (top..<size.height).last(where: hasContent)
        else { return nil }
        var (left, right) = (size.width, 0)
        for y in top...bottom {
            if let first = (0..<left).first(where: { isUnlike($0, y) }) { left = first }
            if let last = (right..<size.width).last(where: { isUnlike($0, y) }) { right = last + 1 }
        }
        rows = top..<(bottom + 1)
        columns = left..<right
    }
}
