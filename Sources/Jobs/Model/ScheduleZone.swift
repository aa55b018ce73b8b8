internal import Core
internal import Foundation

/// A time zone by its name in the IANA database, such as `Europe/Berlin`.
public struct ScheduleZone: Sendable, Hashable, CustomStringConvertible {
    private let zone: TimeZone

    public static let utc = ScheduleZone(.gmt)

    private init(_ zone: TimeZone) { self.zone = zone }

    /// - Throws: `refused` if there is none of this name.
    public init(named name: String) throws(JobsError) {
        if name == "UTC" {
            self = .utc
            return
        }
        // Abbreviations such as EST are refused: most of them mean a fixed offset, which users do not expect.
        guard name.contains("/"), let zone = TimeZone(identifier: name) else {
            let meant = NearestZone.find(name).map { " Did you mean '\($0)'?" } ?? ""
            throw JobsError(
                .refused, "There is no time zone '\(name.prefix(60))'.\(meant) Write it as Europe/Berlin or UTC.")
        }
        self.zone = zone
    }

    public var description: String { self == .utc ? "UTC" : zone.identifier }

    /// Seconds that local time is ahead of UTC.
    ///
    /// - Parameter second: since 1970.
    func offset(at second: Int64) -> Int64 {
        Int64(zone.secondsFromGMT(for: Date(timeIntervalSince1970: Double(second))))
    }

    /// The first moment that shows a local time or, if the clocks skip it, the moment after the skip.
    ///
    /// - Parameter local: seconds since 1970 by a local clock.
    func first(_ local: Int64) -> Int64 {
        // No zone is further than 14 hours from UTC, and none changes twice within these two days.
        let (before, after) = (local - 86_400, local + 86_400)
        let found = [offset(at: before), offset(at: after)].map { local - $0 }
            .filter { $0 + offset(at: $0) == local }.min()
        if let found { return found }
        var (low, high) = (before, after)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if offset(at: middle) == offset(at: before) { low = middle } else { high = middle }
        }
        return high
    }

    /// A moment as its local clock shows it: `2026-03-29 03:00 +02:00`.
    public func text(ofMilliseconds milliseconds: Int64) -> String {
        let second = milliseconds.dividedRoundingDown(by: 1_000)
        let offset = offset(at: second)
        let day = (second + offset).dividedRoundingDown(by: 86_400)
        let time = Date(timeIntervalSince1970: Double(second + offset)).formatted(.iso8601)
        guard time.count >= 16, day > -719_000 else { return time }
        let minutes = abs(offset) / 60
        let clock = { (value: Int64) in value < 10 ? "0\(value)" : "\(value)" }
        let sign = offset < 0 ? "-" : "+"
        return "\(time.prefix(10)) \(time.dropFirst(11).prefix(5)) \(sign)\(clock(minutes / 60)):\(clock(minutes % 60))"
    }
}

/// The known zone that a wrong name is nearest to.
private enum NearestZone {
    static func find(_ name: String) -> String? {
        let lower = name.lowercased().replacing(" ", with: "_")
        let known = TimeZone.knownTimeZoneIdentifiers
        // The city alone.
        return known.first { $0.lowercased().hasSuffix("/" + lower) }
            ?? NearestWord.find(lower, among: known.map { $0.lowercased() }).flatMap { near in
                known.first { $0.lowercased() == near }
            }
    }
}
