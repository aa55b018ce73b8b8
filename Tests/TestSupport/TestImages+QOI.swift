extension TestImages {
    /// A QOI of colours that change with each pixel.
    public static func qoi(_ width: Int, _ height: Int) -> [UInt8] {
        qoi(
            width, height,
            (0..<width * height).map { index in
                let (y, x) = index.quotientAndRemainder(dividingBy: width)
                return [x * 11, y * 13, x * y, 255].map { UInt8($0 & 255) }
            })
    }

    /// A QOI of these pixels (red, green, blue, alpha), written by the specification: each chunk is the shortest that can
    /// stand for a pixel.
    public static func qoi(
        _ width: Int, _ height: Int, channels: UInt8 = 4, space: UInt8 = 0, _ pixels: [[UInt8]],
    ) -> [UInt8] {
        var file = Array("qoif".utf8) + big(width, 4) + big(height, 4) + [channels, space]
        var last: [UInt8] = [0, 0, 0, 255]
        var seen = [[UInt8]](repeating: [0, 0, 0, 0], count: 64)
        var run: UInt8 = 0
        func endRun() {
            if run > 0 { file.append(0xC0 | (run - 1)) }
            run = 0
        }
        for pixel in pixels {
            if pixel == last {
                run += 1
                if run == 62 { endRun() }
                continue
            }
            endRun()
            file += chunk(of: pixel, after: last, seen)
            seen[place(of: pixel)] = pixel
            last = pixel
        }
        endRun()
        return file + [0, 0, 0, 0, 0, 0, 0, 1]
    }

    private static func place(of pixel: [UInt8]) -> Int {
        zip(pixel, [3, 5, 7, 11]).reduce(0) { $0 + Int($1.0) * $1.1 } % 64
    }

    private static func chunk(of pixel: [UInt8], after last: [UInt8], _ seen: [[UInt8]]) -> [UInt8] {
        if seen[place(of: pixel)] == pixel { return [UInt8(place(of: pixel))] }
        guard pixel[3] == last[3] else { return [0xFF] + pixel }
        let moved = zip(pixel, last).prefix(3).map { Int(Int8(bitPattern: $0 &- $1)) }
        if moved.allSatisfy({ (-2...1).contains($0) }) {
            return [UInt8(0x40 | (moved[0] + 2) << 4 | (moved[1] + 2) << 2 | (moved[2] + 2))]
        }
        let (red, green, blue) = (moved[0] - moved[1], moved[1], moved[2] - moved[1])
        if (-32...31).contains(green), (-8...7).contains(red), (-8...7).contains(blue) {
            return [UInt8(0x80 | (green + 32)), UInt8((red + 8) << 4 | (blue + 8))]
        }
        return [0xFE] + pixel.prefix(3)
    }
}
