/// Chooses the colours that a picture of many is shown with: the box of colours that varies most is cut in two where
/// that helps most, until there are enough.
struct WuQuantiser {
    private let moments: ColourMoments

    init(_ moments: ColourMoments) {
        self.moments = moments
    }

    /// - Parameter most: at least 1.
    /// - Returns: at most as many, opaque and different; none for a picture without opaque pixels.
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

    /// A box of a single step is never cut: what is in it is nearly one colour.
    private func variance(_ box: ColourBox) -> Double {
        let isSingle = ColourBox.axes.allSatisfy { box[keyPath: $0].count <= 1 }
        return isSingle ? 0 : moments.sum(box).variance
    }

    /// The two parts that are the nearest to their means, or nil where all pixels are on one side of every cut.
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
