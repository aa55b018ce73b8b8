internal import Core

/// A place in a picture: the middle, a side or a corner.
public enum Gravity: String, CaseIterable, Hashable, Sendable {
    case centre, north, south, east, west
    case northEast = "north-east"
    case northWest = "north-west"
    case southEast = "south-east"
    case southWest = "south-west"

    /// The share of the free space that lies before the picture: 0 puts it at the left or top, 1 at the right or
    /// bottom.
    package var share: (x: Double, y: Double) {
        switch self {
        case .centre: (0.5, 0.5)
        case .north: (0.5, 0)
        case .south: (0.5, 1)
        case .east: (1, 0.5)
        case .west: (0, 0.5)
        case .northEast: (1, 0)
        case .northWest: (0, 0)
        case .southEast: (1, 1)
        case .southWest: (0, 1)
        }
    }
}

/// Which part of a picture `cover` keeps, and where in its box `contain` puts it.
///
/// In short `north-west`, `attention`, `entropy`, `focus:0.3:0.7`; in JSON `"position": "north-west"` or
/// `"position": {"x": 0.3, "y": 0.7}`.
public enum Position: Hashable, Sendable {
    case gravity(Gravity)
    /// A point, 0 to 1 from the left and the top. `cover` keeps it as near to the middle as the picture's edges allow.
    case focus(x: Double, y: Double)
    /// The part that attracts the eye: skin, saturated colours, edges (libvips' smartcrop). `contain` puts the picture
    /// in the centre.
    case attention
    /// The part with the most detail (libvips' smartcrop). `contain` puts the picture in the centre.
    case entropy

    static let centre = Position.gravity(.centre)

    /// The spelling in an identity and in the short form.
    var canonical: String {
        switch self {
        case .gravity(let gravity): gravity.rawValue
        case .focus(let x, let y): "focus:\(ParameterValue.number(x).canonical):\(ParameterValue.number(y).canonical)"
        case .attention: "attention"
        case .entropy: "entropy"
        }
    }

    package static let words = Gravity.allCases.map(\.rawValue) + ["attention", "entropy", "focus"]
    private static let axes = [Parameter("x", .number(0...1)), Parameter("y", .number(0...1))]

    /// - Returns: nil if it is no position.
    init?(short part: String) throws(VariantSpecError) {
        if let gravity = Gravity(rawValue: part) {
            self = .gravity(gravity)
        } else if part == "attention" {
            self = .attention
        } else if part == "entropy" {
            self = .entropy
        } else if part == "focus" || part.hasPrefix("focus:") {
            let values = part.split(separator: ":", omittingEmptySubsequences: false).dropFirst().map(String.init)
            guard values.count == 2 else {
                throw VariantSpecError(
                    "'\(VariantSpecError.quoted(part))': a focus is two numbers; write focus:0.5:0.3")
            }
            self = try .focus(Self.axes[0].read(values[0], of: "focus"), Self.axes[1].read(values[1], of: "focus"))
        } else {
            return nil
        }
    }

    init(json: JSONValue) throws(VariantSpecError) {
        switch json {
        case .string(let word):
            guard let position = try Position(short: word) else {
                let hint =
                    NearestWord.find(word, among: Self.words).map { "did you mean \($0)?" }
                    ?? "it is one of \(Self.words.dropLast().joined(separator: ", "))"
                throw VariantSpecError("'\(VariantSpecError.quoted(word))' is no position; \(hint)")
            }
            self = position
        case .object(let members):
            guard Set(members.keys) == ["x", "y"], let x = members["x"], let y = members["y"] else {
                throw VariantSpecError(#"a position is a word, or a point such as {"x":0.5,"y":0.3}"#)
            }
            self = try .focus(Self.axes[0].read(x, of: "position"), Self.axes[1].read(y, of: "position"))
        default: throw VariantSpecError("'position' must be a word or a point, not \(json.kind)")
        }
    }

    private static func focus(_ x: ParameterValue, _ y: ParameterValue) -> Position {
        guard case .number(let x) = x, case .number(let y) = y else { return .centre }
        // A point at a side, a corner or the centre equals the gravity there.
        return Gravity.allCases.first { $0.share == (x, y) }.map { .gravity($0) } ?? .focus(x: x, y: y)
    }
}
