/// The pictures that a job accepts: `min-width=200, max-bytes=5MB, max-aspect=3:1`. Ranges include both ends.
public struct PictureFilter: Hashable, Sendable {
    /// The measured properties of a picture.
    enum Quantity: String, CaseIterable {
        case width, height, area, bytes, aspect
    }

    private var ranges: [Quantity: ClosedRange<Double>] = [:]

    public init() {}

    /// Above the largest value of any picture.
    private static let most = 1e15

    static let names = Quantity.allCases.flatMap { ["min-\($0.rawValue)=N", "max-\($0.rawValue)=N"] }

    /// Applies an option.
    ///
    /// - Returns: whether the name is an option of this filter.
    mutating func set(_ name: Substring, to text: String) throws(JobsError) -> Bool {
        let isLeast = name.hasPrefix("min-")
        guard isLeast || name.hasPrefix("max-"), let quantity = Quantity(rawValue: String(name.dropFirst(4))) else {
            return false
        }
        guard let number = quantity.number(text), (0...Self.most).contains(number) else {
            throw JobsError(.refused, "\(name) must be \(quantity.form), not '\(text.prefix(64))'.")
        }
        let known = ranges[quantity] ?? 0...Self.most
        let (least, most) = isLeast ? (number, known.upperBound) : (known.lowerBound, number)
        guard least <= most else {
            throw JobsError(
                .refused,
                "No picture has a \(quantity.rawValue) of at least \(Self.text(least)) and at most \(Self.text(most)).")
        }
        ranges[quantity] = least...most
        return true
    }

    public var isEmpty: Bool { ranges.isEmpty }

    /// The accepted body sizes; nil for any.
    public var bytes: ClosedRange<Int64>? {
        ranges[.bytes].map { Int64($0.lowerBound.rounded(.up))...Int64(max($0.upperBound, $0.lowerBound.rounded(.up))) }
    }

    /// The options on body sizes, as the job wrote them.
    public var wantedBytes: String { wanted(.bytes) }

    /// Whether the size in a picture's header may refuse it.
    public var measuresPixels: Bool { ranges.keys.contains { $0 != .bytes } }

    /// Why a picture is refused, in a sentence; nil if it is accepted.
    ///
    /// - Parameter isUpright: whether `width` and `height` are those of the upright picture. A file's header may have
    ///   them turned, so with `false` a picture is refused only if both orientations are refused.
    public func objection(width: Int, height: Int, isUpright: Bool = true) -> String? {
        guard let quantity = refused(width, height), isUpright || refused(height, width) != nil else { return nil }
        return "The picture has \(width)×\(height) pixels, and the job accepts \(wanted(quantity))."
    }

    /// Why a body is refused, in a sentence; nil if it is accepted.
    public func objection(bytes: Int64) -> String? {
        guard let range = ranges[.bytes], !range.contains(Double(bytes)) else { return nil }
        return "The body has \(bytes) bytes, and the job accepts \(wanted(.bytes))."
    }

    private func refused(_ width: Int, _ height: Int) -> Quantity? {
        let (width, height) = (Double(width), Double(height))
        let found: [(Quantity, Double)] = [
            (.width, width), (.height, height), (.area, width * height), (.aspect, width / max(height, 1)),
        ]
        return found.first { quantity, number in ranges[quantity].map { !$0.contains(number) } ?? false }?.0
    }

    private func wanted(_ quantity: Quantity) -> String {
        let range = ranges[quantity] ?? 0...Self.most
        let ends = [
            range.lowerBound > 0 ? "min-\(quantity.rawValue)=\(Self.text(range.lowerBound))" : nil,
            range.upperBound < Self.most ? "max-\(quantity.rawValue)=\(Self.text(range.upperBound))" : nil,
        ]
        return ends.compactMap { $0 }.joined(separator: ", ")
    }

    private static func text(_ number: Double) -> String {
        number == number.rounded() ? "\(Int64(number))" : "\(number)"
    }
}

extension PictureFilter: CustomStringConvertible {
    /// The filter as options.
    public var description: String {
        Quantity.allCases.map(wanted).filter { !$0.isEmpty }.joined(separator: ", ")
    }
}

extension PictureFilter.Quantity {
    fileprivate var form: String {
        switch self {
        case .width, .height: "a whole number of pixels from 0 to 1000000000000000"
        case .area: "a whole number of pixels in all from 0 to 1000000000000000"
        case .bytes: "a whole number of bytes, kB, MB, KiB or MiB, from 0 to 1000 TB"
        case .aspect: "the width divided by the height, from 0 to 1000000000000000, as 1.5 or 3:2"
        }
    }

    fileprivate func number(_ text: String) -> Double? {
        switch self {
        case .width, .height, .area:
            return UInt64(text).map { Double($0) }
        case .bytes:
            let units: [(String, Double)] = [("kB", 1e3), ("MB", 1e6), ("KiB", 1_024), ("MiB", 1_048_576)]
            let unit = units.first { text.hasSuffix($0.0) }
            return UInt64(text.dropLast(unit?.0.count ?? 0)).map { Double($0) * (unit?.1 ?? 1) }
        case .aspect:
            let parts = text.split(separator: ":", omittingEmptySubsequences: false).map { Double($0) }
            guard parts.count <= 2, let first = parts.first ?? nil, let last = parts.last ?? nil, first.isFinite else {
                return nil
            }
            return parts.count == 1 ? first : last > 0 ? first / last : nil
        }
    }
}
