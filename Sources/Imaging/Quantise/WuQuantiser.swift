import ImageFiles

/// Chooses the colours for a picture with too many: it repeatedly cuts the box of colours that varies most at the best
/// place, until there are enough boxes.
struct WuQuantiser {
    private let moments: ColourMoments

    init(_ moments: ColourMoments) {
        self.moments = moments
    }

    /// - Parameter most: at least 1.
    /// - Returns: at most that many different opaque colours; none for a picture without opaque pixels.
    func colours(atMost most: Int) -> [Pixel] {
        var boxes = [ColourBox()]
        var variances = [Double.infinity]
        while boxes.count < most, let widest = variances.indices.max(by: { variances[$0] < variances[$1] }),
            variances[widest] > 0
        {
            guard let (low, high) = cut(boxes[widest]) else {
                variances[widest] = 0
                continue
            }
            boxes[widest] = low
            variances[widest] = variance(low)
            boxes.append(high)
            variances.append(variance(high))
        }
        return ColourTable(boxes.compactMap { moments.sum($0).mean }).colours
    }

    /// A box of a single step is never cut, since it is nearly one colour.
    private func variance(_ box: ColourBox) -> Double {
        let isSingle = ColourBox.axes.allSatisfy { box[keyPath: $0].count <= 1 }
        return isSingle ? 0 : moments.sum(box).variance
    }

    /// The two parts with the least variance, or nil if all pixels are on one side of every cut.
    private func cut(_ box: ColourBox) -> (ColourBox, ColourBox)? {
        let whole = moments.sum(box)
        var best: (weight: Double, parts: (ColourBox, ColourBox))?
        for axis in ColourBox.axes {
            let range = box[keyPath: axis]
            for position in range.dropFirst() {
                var (low, high) = (box, box)
                low[keyPath: axis] = range.lowerBound..<position
                high[keyPath: axis] = position..<range.upperBound
                let part = moments.sum(low)
                guard part.count > 0, part.count < whole.count else { continue }
                let weight = part.weight + (whole - part).weight
                if weight > best?.weight ?? 0 { best = (weight, (low, high)) }
            }
        }
        return best?.parts
    }
}

/// A cumulative histogram of a picture's colours in 32 steps a channel: the sums over any box of colours take eight
/// look-ups. Xiaolin Wu, "Efficient statistical computations for optimal color quantization", Graphics Gems II, 1991.
struct ColourMoments {
    /// Sums over pixels.
    struct Sum {
        var count = 0
        var red = 0
        var green = 0
        var blue = 0
        /// Of the squares of all three channels.
        var squares = 0

        /// The loss if all of them become their mean.
        var variance: Double {
            count == 0 ? 0 : Double(squares) - weight
        }

        /// The gain if they get a colour of their own.
        var weight: Double {
            guard count > 0 else { return 0 }
            return Double(red * red + green * green + blue * blue) / Double(count)
        }

        var mean: Pixel? {
            guard count > 0 else { return nil }
            let half = count / 2
            return Pixel(
                red: UInt8((red + half) / count), green: UInt8((green + half) / count),
                blue: UInt8((blue + half) / count))
        }

        static func += (left: inout Sum, right: Sum) {
            left.count += right.count
            left.red += right.red
            left.green += right.green
            left.blue += right.blue
            left.squares += right.squares
        }

        static func - (left: Sum, right: Sum) -> Sum {
            Sum(
                count: left.count - right.count, red: left.red - right.red, green: left.green - right.green,
                blue: left.blue - right.blue, squares: left.squares - right.squares)
        }

        static func + (left: Sum, right: Sum) -> Sum {
            var sum = left
            sum += right
            return sum
        }
    }

    /// 32 steps, and a plane of zeros before them.
    static let side = 33
    private var sums = [Sum](repeating: Sum(), count: side * side * side)

    /// - Parameter pixels: opaque, or transparent black ones, which are skipped.
    init(of pixels: UnsafeMutableBufferPointer<Pixel>) {
        sums.withUnsafeMutableBufferPointer { sums in
            for pixel in pixels where pixel != Pixel() {
                let (red, green, blue) = (pixel.red, pixel.green, pixel.blue)
                let place = Self.place(red >> 3 + 1, green >> 3 + 1, blue >> 3 + 1)
                sums[place] += Sum(
                    count: 1, red: red, green: green, blue: blue, squares: red * red + green * green + blue * blue)
            }
        }
        accumulate()
    }

    private static func place(_ red: Int, _ green: Int, _ blue: Int) -> Int { (red * side + green) * side + blue }

    private mutating func accumulate() {
        for red in 1..<Self.side {
            var area = [Sum](repeating: Sum(), count: Self.side)
            for green in 1..<Self.side {
                var line = Sum()
                for blue in 1..<Self.side {
                    let place = Self.place(red, green, blue)
                    line += sums[place]
                    area[blue] += line
                    sums[place] = sums[place - Self.side * Self.side] + area[blue]
                }
            }
        }
    }

    /// The sum over a box of colours.
    func sum(_ box: ColourBox) -> Sum {
        corner(box.red.upperBound, box) - corner(box.red.lowerBound, box)
    }

    private func corner(_ red: Int, _ box: ColourBox) -> Sum {
        let (green, blue) = (box.green, box.blue)
        return sums[Self.place(red, green.upperBound, blue.upperBound)]
            - sums[Self.place(red, green.upperBound, blue.lowerBound)]
            - sums[Self.place(red, green.lowerBound, blue.upperBound)]
            + sums[Self.place(red, green.lowerBound, blue.lowerBound)]
    }
}

/// A box of colours in steps of the histogram: above the lower bounds, up to and including the upper ones.
struct ColourBox {
    var red = 0..<(ColourMoments.side - 1)
    var green = 0..<(ColourMoments.side - 1)
    var blue = 0..<(ColourMoments.side - 1)

    static var axes: [WritableKeyPath<ColourBox, Range<Int>>] { [\.red, \.green, \.blue] }
}
