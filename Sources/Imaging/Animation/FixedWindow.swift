internal import CVips

extension Position {
    private var looksAtPixels: Bool { self == .attention || self == .entropy }

    /// Found once, for all pictures that follow this one: a window that looked at each of them would jump.
    ///
    /// - Parameter picture: of the size it is cropped from.
    /// - Returns: a point in the middle of the window where this position looks at pixels.
    func fixed(on picture: Picture, _ placement: Placement) throws(VipsFailure) -> Position {
        guard looksAtPixels, placement.isCropped else { return self }
        let window = try picture.cropped(to: placement, at: self)
        // libvips says where the picture would begin in what is left of it.
        let (left, top) = window.lend { (-Int(vips_image_get_xoffset($0)), -Int(vips_image_get_yoffset($0))) }
        return .focus(
            x: Self.point(left, of: placement.output.width, in: placement.scaled.width),
            y: Self.point(top, of: placement.output.height, in: placement.scaled.height))
    }

    /// Half a pixel further than the middle, so that rounding down comes back to `start`.
    private static func point(_ start: Int, of length: Int, in whole: Int) -> Double {
        (Double(start) + Double(length) / 2 + 0.5) / Double(whole)
    }
}
