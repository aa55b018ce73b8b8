import Variants

/// A width and a height in pixels.
struct PixelSize: Hashable, Sendable {
    var width: Int
    var height: Int

    /// As it is stored, when the picture is shown turned by a quarter.
    var transposed: PixelSize { PixelSize(width: height, height: width) }

    /// The largest of this shape whose pixels take no more than so many bytes as RGBA; never less than 1×1.
    func scaledDown(toBytes bytes: Int) -> PixelSize {
        let most = Double(max(1, bytes / 4))
        guard Double(pixels) > most else { return self }
        let factor = (most / Double(pixels)).squareRoot()
        let width = max(1, Int(Double(width) * factor))
        let height = max(1, Int(Double(height) * factor))
        // A line can't get thinner, so it gets shorter.
        return PixelSize(width: min(width, max(1, Int(most) / height)), height: min(height, max(1, Int(most) / width)))
    }

    /// Headers may claim anything, and none of their numbers has more than 63 bits: the largest there is where it doesn't fit.
    var pixels: Int {
        let (product, overflow) = width.multipliedReportingOverflow(by: height)
        return overflow ? .max : product
    }
}

/// How a picture is brought to a variant's size: first scaled, then cropped or padded around its centre.
///
/// In each axis `output` smaller than `scaled` means a crop, larger means padding.
struct Placement: Hashable, Sendable {
    var scaled: PixelSize
    var output: PixelSize

    var isCropped: Bool { output.width < scaled.width || output.height < scaled.height }
    var isPadded: Bool { output.width > scaled.width || output.height > scaled.height }
}

extension Placement {
    /// Where a picture of `source` pixels, as it is seen, ends up.
    ///
    /// The rules, with the numbers rounded to the nearest pixel and never below one:
    ///
    /// - One side empty: proportionate, whatever the fit.
    /// - `inside`: the largest that fits into the box; `outside`: the smallest that covers it; both keep the aspect.
    /// - `cover`: `outside`, then cropped to the box. `contain`: `inside`, then padded to the box.
    /// - `fill`: stretched to the box.
    ///
    /// Without `enlarge` no axis is ever scaled up, as with sharp's `withoutEnlargement`: what would have grown keeps
    /// its size. `cover` of a source that is too small in one axis therefore is the box clipped to the source, and
    /// has another aspect than the box; `fill` stretches only the axes that shrink; `contain` pads to the whole box.
    init(of source: PixelSize, width: Int?, height: Int?, fit: VariantSpec.Fit, enlarge: Bool) {
        let most = enlarge ? Double.infinity : 1
        guard let width, let height else {
            let horizontal = width.map { Double($0) / Double(source.width) }
            let vertical = height.map { Double($0) / Double(source.height) }
            let scaled = source.scaled(by: min(horizontal ?? vertical ?? 1, most))
            self.init(scaled: scaled, output: scaled)
            return
        }
        let horizontal = min(Double(width) / Double(source.width), most)
        let vertical = min(Double(height) / Double(source.height), most)
        let box = PixelSize(width: width, height: height)
        switch fit {
        case .inside, .contain:
            let scaled = source.scaled(by: min(horizontal, vertical)).clipped(to: box)
            self.init(scaled: scaled, output: fit == .contain ? box : scaled)
        case .outside, .cover:
            let scaled = source.scaled(by: max(horizontal, vertical))
            self.init(scaled: scaled, output: fit == .cover ? scaled.clipped(to: box) : scaled)
        case .fill:
            let scaled = enlarge ? box : source.clipped(to: box)
            self.init(scaled: scaled, output: scaled)
        }
    }
}

extension PixelSize {
    fileprivate func scaled(by factor: Double) -> PixelSize {
        PixelSize(
            width: max(1, Int((Double(width) * factor).rounded())),
            height: max(1, Int((Double(height) * factor).rounded())),
        )
    }

    fileprivate func clipped(to box: PixelSize) -> PixelSize {
        PixelSize(width: min(width, box.width), height: min(height, box.height))
    }
}

extension Position {
    /// Where a picture lies in a box that is larger in an axis, or sticks out of one that is smaller: its left top
    /// corner, below zero for what is cut off. What looks at pixels is taken for the centre here.
    func place(of picture: PixelSize, in box: PixelSize) -> (left: Int, top: Int) {
        let point: (x: Double, y: Double)
        switch self {
        case .gravity(let gravity): point = gravity.share
        case .focus(let x, let y):
            return (
                Self.around(x, picture.width, box.width),
                Self.around(y, picture.height, box.height)
            )
        case .attention, .entropy: point = Gravity.centre.share
        }
        return (
            Self.shared(point.x, picture.width, box.width),
            Self.shared(point.y, picture.height, box.height)
        )
    }

    /// The room left over, divided.
    private static func shared(_ share: Double, _ length: Int, _ room: Int) -> Int {
        room >= length
            ? Int((Double(room - length) * share).rounded(.down)) : -Int((Double(length - room) * share).rounded(.down))
    }

    /// The point in the middle of the box, as far as the ends allow.
    private static func around(_ share: Double, _ length: Int, _ room: Int) -> Int {
        guard length > room else { return shared(share, length, room) }
        let start = Int((Double(length) * share - Double(room) / 2).rounded(.down))
        return -min(max(start, 0), length - room)
    }
}
