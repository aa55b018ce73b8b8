internal import CVips

extension Picture {
    /// Without the border that is like the top left pixel. A picture that is nothing but border stays as it is.
    func trimmed(threshold: Double) throws(VipsFailure) -> Picture {
        guard let area = try content(threshold: threshold) else { return self }
        let (width, height) = (area.right - area.left, area.bottom - area.top)
        return try then { pw_vips_crop($0, &$1, area.left, area.top, width, height) }
    }

    /// What differs from the top left pixel by more than `threshold`, in alpha or in colours. Those are weighed by their
    /// alpha: what can't be seen has none.
    private func content(threshold: Double) throws(VipsFailure) -> Area? {
        guard hasAlpha else {
            let corner = try withPixels { pixels in pixels[..<bands].map(Double.init) }
            return try unlike(corner, threshold)
        }
        let weighed = try then { pw_vips_premultiply($0, &$1) }.inBytes().inMemory()
        let count = CInt(bands - 1)
        let corner = try weighed.withPixels { pixels in pixels[..<bands].map(Double.init) }
        // libvips would lay on white what has an alpha.
        let colours = try weighed.then { pw_vips_first_bands($0, &$1, count) }
        let alpha = try weighed.then { pw_vips_band($0, &$1, count) }
        let areas = [
            try colours.unlike(corner.dropLast(), threshold), try alpha.unlike(corner.suffix(1), threshold),
        ].compactMap { $0 }
        guard let first = areas.first else { return nil }
        return areas.dropFirst().reduce(first) { $0.union($1) }
    }

    private func unlike(_ corner: [Double], _ threshold: Double) throws(VipsFailure) -> Area? {
        var (left, top, width, height) = (CInt(0), CInt(0), CInt(0), CInt(0))
        guard lend({ pw_vips_find_trim($0, threshold, corner, &left, &top, &width, &height) }) == 0 else {
            throw VipsFailure.take()
        }
        return width > 0 && height > 0 ? Area(left: left, top: top, right: left + width, bottom: top + height) : nil
    }
}

private struct Area {
    var left, top, right, bottom: CInt

    func union(_ other: Area) -> Area {
        Area(
            left: min(left, other.left), top: min(top, other.top), right: max(right, other.right),
            bottom: max(bottom, other.bottom))
    }
}
