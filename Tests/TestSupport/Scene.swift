/// Pictures with structure, no two alike: a dozen soft-coloured boxes on a sky, as different as their numbers.
public enum Scene {
    private struct Box {
        let left, top, right, bottom: Int
        let colour: TestImages.Pixel
    }

    /// 320×240 unless another width is asked for.
    public static func png(_ number: Int, width: Int = 320) -> [UInt8] {
        let boxes = boxes(number)
        let height = width * 3 / 4
        return TestImages.png(width, height) { x, y in
            let (across, down) = (x * 1_000 / width, y * 1_000 / height)
            let box = boxes.last {
                ($0.left..<$0.right).contains(across) && ($0.top..<$0.bottom).contains(down)
            }
            return box?.colour ?? (UInt8(90 + down / 10), UInt8(120 + across / 20), 200, 255)
        }
    }

    private static func boxes(_ number: Int) -> [Box] {
        var random = SeededGenerator(seed: UInt64(number))
        return (0..<14).map { _ in
            let (left, top) = (Int.random(in: -100...850, using: &random), Int.random(in: -100...850, using: &random))
            let level = { UInt8.random(in: 0...255, using: &random) }
            return Box(
                left: left, top: top, right: left + Int.random(in: 80...450, using: &random),
                bottom: top + Int.random(in: 80...450, using: &random), colour: (level(), level(), level(), 255))
        }
    }
}
