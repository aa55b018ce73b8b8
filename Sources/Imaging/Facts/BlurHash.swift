internal import Glibc
import ImageFiles

/// A blurred picture in a few dozen characters, which apps and web pages show while they load the real one.
///
/// Implements the algorithm described in <https://github.com/woltapp/blurhash/blob/master/Algorithm.md>.
struct BlurHash: Equatable {
    let text: String

    /// - Parameters:
    ///   - picture: its alpha is ignored.
    ///   - columns: waves across, 1 to 9; the same for `rows`, down.
    init(of picture: Miniature, columns: Int, rows: Int) {
        precondition((1...9).contains(columns) && (1...9).contains(rows))
        let waves = (0..<3).map { channel in
            picture.linearPlane(channel).waves(columns: columns, rows: rows, phase: 0)
        }
        let pixels = Double(picture.width * picture.height)
        let average = waves.map { $0[0] / pixels }
        let details = (1..<(columns * rows)).map { index in waves.map { 2 * $0[index] / pixels } }
        let peak = details.joined().reduce(0) { max($0, abs($1)) }
        let quantised = details.isEmpty ? 0 : max(0, min(82, Int(peak * 166 - 0.5)))
        let scale = details.isEmpty ? 1 : Double(quantised + 1) / 166
        text =
            Self.base83(columns - 1 + (rows - 1) * 9, digits: 1) + Self.base83(quantised, digits: 1)
            + Self.base83(average.reduce(0) { $0 << 8 | Self.fromLinear($1) }, digits: 4)
            + details.map { detail in
                Self.base83(detail.reduce(0) { $0 * 19 + Self.step($1 / scale) }, digits: 2)
            }.joined()
    }

    /// One of 19 steps for −1…1, which are closer to each other around 0.
    private static func step(_ value: Double) -> Int {
        let root = value < 0 ? -sqrt(-value) : sqrt(value)
        return max(0, min(18, Int((root * 9 + 9.5).rounded(.down))))
    }

    private static func base83(_ value: Int, digits: Int) -> String {
        var rest = value
        var text: [UInt8] = []
        for _ in 0..<digits {
            text.append(alphabet[rest % 83])
            rest /= 83
        }
        return String(decoding: text.reversed(), as: UTF8.self)
    }

    private static let alphabet = Array(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8)

    /// 0…255 in sRGB.
    private static func fromLinear(_ value: Double) -> Int {
        let value = max(0, min(1, value))
        let curved = value <= 0.0031308 ? value * 12.92 : 1.055 * pow(value, 1 / 2.4) - 0.055
        return Int(curved * 255 + 0.5)
    }

    fileprivate static let toLinear = (0...255).map { byte in
        let value = Double(byte) / 255
        return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }
}

extension Miniature {
    /// A channel in linear light.
    fileprivate func linearPlane(_ channel: Int) -> Plane {
        let table = BlurHash.toLinear
        return Plane(
            width: width, height: height,
            values: stride(from: channel, to: bytes.count, by: 4).map { table[Int(bytes[$0])] })
    }
}
