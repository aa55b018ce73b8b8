/// A time by one of the clocks that the worker goes by, in milliseconds.
///
/// Each clock has a type of its own, so that times of two clocks can't be compared, or subtracted from each other, by
/// mistake. Times come from tables and servers, too, which may hold any number: all arithmetic saturates.
public protocol ClockTime: Comparable, Hashable, Sendable, Codable, CustomStringConvertible {
    var milliseconds: Int64 { get }

    init(milliseconds: Int64)
}

/// A time by the machine's clock, as people see it, in UTC milliseconds. The clock jumps when it is set.
public struct WallTime: ClockTime {
    public let milliseconds: Int64

    public init(milliseconds: Int64) { self.milliseconds = milliseconds }
}

/// A time by the database's own clock, in milliseconds: the machine's clock without its jumps. Leases, waits, the
/// blacklist and the ages of files go by it.
public struct SteadyTime: ClockTime {
    public let milliseconds: Int64

    public init(milliseconds: Int64) { self.milliseconds = milliseconds }
}

/// The same moment by both clocks. Only a moment converts a time of one clock to a time of the other clock.
public struct Moment: Hashable, Sendable {
    public let wall: WallTime
    public let steady: SteadyTime

    /// - Parameter jumps: how far the machine's clock has been set ahead in all, in milliseconds.
    public init(wall: WallTime, jumps: Int64) {
        self.wall = wall
        steady = SteadyTime(milliseconds: (wall - jumps).milliseconds)
    }

    /// Converts a time of the machine's clock to the database's clock. Its distance to this moment stays the same.
    public func steady(_ time: WallTime) -> SteadyTime { steady + (time - wall) }

    /// Converts a time of the database's clock to the machine's clock.
    public func wall(_ time: SteadyTime) -> WallTime { wall + (time - steady) }
}

extension ClockTime {
    /// Within some 140,000 years (2⁵² ms), so that a date can be made of it.
    public init(clamping milliseconds: Int64) {
        self.init(milliseconds: Swift.min(Swift.max(milliseconds, -1 << 52), 1 << 52))
    }

    public static var min: Self { Self(milliseconds: .min) }
    public static var max: Self { Self(milliseconds: .max) }

    public static func < (a: Self, b: Self) -> Bool { a.milliseconds < b.milliseconds }

    /// The time so many milliseconds later.
    public static func + (time: Self, milliseconds: Int64) -> Self {
        let (sum, overflow) = time.milliseconds.addingReportingOverflow(milliseconds)
        return overflow ? (milliseconds < 0 ? .min : .max) : Self(milliseconds: sum)
    }

    /// The time so many milliseconds earlier.
    public static func - (time: Self, milliseconds: Int64) -> Self {
        Self(milliseconds: difference(time.milliseconds, milliseconds))
    }

    /// The milliseconds from the second time to the first; never the least number, which has no `abs`.
    public static func - (a: Self, b: Self) -> Int64 {
        Swift.max(difference(a.milliseconds, b.milliseconds), -.max)
    }

    private static func difference(_ a: Int64, _ b: Int64) -> Int64 {
        let (difference, overflow) = a.subtractingReportingOverflow(b)
        return overflow ? (b < 0 ? .max : .min) : difference
    }

    /// The number alone, as in JSON.
    public var description: String { "\(milliseconds)" }

    public init(from decoder: any Decoder) throws {
        self.init(milliseconds: try decoder.singleValueContainer().decode(Int64.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(milliseconds)
    }
}

extension Duration {
    package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }

    package var milliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }

    package var microseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}
