import ImageFiles
import Variants

/// How a picture is brought to a variant's size: first scaled, then cropped or padded around its centre.
///
/// An axis in which `output` is smaller than `scaled` is cropped; one in which it is larger is padded.
struct Placement: Hashable, Sendable {
    var scaled: PixelSize
    var output: PixelSize

    var isCropped: Bool { output.width < scaled.width || output.height < scaled.height }
    var isPadded: Bool { output.width > scaled.width || output.height > scaled.height }
}

extension Placement {
    /// The result for an upright picture of `source` pixels.
    ///
    /// The rules, with the numbers rounded to the nearest pixel and never below one:
    ///
    /// - One side empty: proportionate, with any fit.
    /// - `inside`: the largest size that fits into the box; `outside`: the smallest that covers it; both keep the
    ///   aspect.
    /// - `cover`: `outside`, then cropped to the box. `contain`: `inside`, then padded to the box.
    /// - `fill`: stretched to the box.
    ///
    /// Without `enlarge` no axis is ever scaled up, as with sharp's `withoutEnlargement`; an axis that would grow keeps
    /// its size. So if the source is too small in one axis, `cover` gives the box clipped to the source, with another
    /// aspect than the box; `fill` stretches only the axes that shrink; `contain` pads to the whole box.
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
    /// The left top corner of a picture in a box: positive where the box is larger, negative where the picture is
    /// cropped. Positions that depend on pixels count as the centre here.
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

    /// The share of the free space that lies before the picture.
    private static func shared(_ share: Double, _ length: Int, _ room: Int) -> Int {
        room >= length
            ? Int((Double(room - length) * share).rounded(.down)) : -Int((Double(length - room) * share).rounded(.down))
    }

    /// Puts the point into the middle of the box, as far as the picture's edges allow.
    private static func around(_ share: Double, _ length: Int, _ room: Int) -> Int {
        guard length > room else { return shared(share, length, room) }
        let start = Int((Double(length) * share - Double(room) / 2).rounded(.down))
        return -min(max(start, 0), length - room)
    }
}
