public import Core

/// When a schedule is due: the five fields of crontab(5) (minute, hour, day of the month, month, day of the week) with
/// lists, ranges, steps, names of months and days, and the words `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
///
/// As in crontab(5), if both fields of the day are restricted, a day matches if either field matches.
public struct CronExpression: Sendable, Hashable, CustomStringConvertible {
    public let description: String
    private let minutes: Field
    private let hours: Field
    private let daysOfMonth: Field
    private let months: Field
    private let weekdays: Field

    /// The values of a field, a bit for each.
    private struct Field: Hashable, Sendable {
        var mask: UInt64
        /// Whether it begins with `*`, which doesn't restrict the days.
        let isOpen: Bool

        func contains(_ value: Int) -> Bool { mask & 1 << UInt64(value) != 0 }
    }

    private static let words = [
        "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
        "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
    ]

    /// - Throws: `refused`, with the field that is wrong and what it may be.
    public init(parsing text: String) throws(JobsError) {
        let lower = text.lowercased()
        let fields = (Self.words[lower] ?? lower).split(whereSeparator: \.isWhitespace).map(String.init)
        guard fields.count == 5 else {
            let words = Self.words.keys.sorted()
            let question = fields.count == 1 ? NearestWord.question(lower, among: words) : ""
            throw JobsError(
                .refused,
                "'\(text.prefix(100))' is no schedule: it needs five fields (minute, hour, day of the month, month, day of the week), "
                    + "such as '17 3 * * *' for each day at 3:17, or one of \(words.joined(separator: ", ")).\(question)"
            )
        }
        description = fields.joined(separator: " ")
        minutes = try Self.field(fields[0], "minute", 0...59)
        hours = try Self.field(fields[1], "hour", 0...23)
        daysOfMonth = try Self.field(fields[2], "day of the month", 1...31)
        months = try Self.field(fields[3], "month", 1...12, names: Self.monthNames)
        var weekdays = try Self.field(fields[4], "day of the week", 0...7, names: Self.dayNames)
        // 7 is Sunday, too.
        if weekdays.contains(7) { weekdays.mask |= 1 }
        self.weekdays = weekdays
    }

    private static let monthNames = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]
    private static let dayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]

    private static func field(
        _ text: String, _ name: String, _ range: ClosedRange<Int>, names: [String] = [],
    ) throws(JobsError) -> Field {
        var mask: UInt64 = 0
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let halves = part.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            let step = halves.count == 2 ? number(halves[1]) : 1
            guard let values = values(String(halves[0]), range, names, isStepped: halves.count == 2),
                let step, (1...range.upperBound).contains(step)
            else {
                let named = names.isEmpty ? "" : " or \(names[0]) to \(names[names.count - 1])"
                let highest = names == dayNames ? 6 : range.upperBound
                let word = text.split { ",-/".contains($0) }.map(String.init)
                    .first { Int($0) == nil && $0 != "*" && !names.contains($0) }
                let meant = word.flatMap { word in
                    NearestWord.find(word, among: names) ?? names.first { word.hasPrefix($0) }
                }
                throw JobsError(
                    .refused,
                    "'\(text.prefix(60))' is no \(name) of a schedule: it is *, a number from \(range.lowerBound) to \(highest)\(named), a range "
                        + "such as \(range.lowerBound)-\(highest), a step such as */2 (1 to \(range.upperBound)), or several of these with commas."
                        + (meant.map { " Did you mean '\($0)'?" } ?? "")
                )
            }
            for value in stride(from: values.lowerBound, through: values.upperBound, by: step) {
                mask |= 1 << UInt64(value)
            }
        }
        return Field(mask: mask, isOpen: text.hasPrefix("*"))
    }

    private static func values(
        _ text: String, _ range: ClosedRange<Int>, _ names: [String], isStepped: Bool,
    ) -> ClosedRange<Int>? {
        if text == "*" { return range.upperBound == 7 ? 0...6 : range }
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { word in
            names.firstIndex(of: String(word)).map { $0 + range.lowerBound } ?? number(word)
        }
        guard ends.count <= 2, let first = ends.first ?? nil, let last = ends.last ?? nil,
            range.contains(first), range.contains(last), first <= last
        else { return nil }
        // As in cron, 5/10 means every ten from 5 on.
        return first...(isStepped && ends.count == 1 ? range.upperBound : last)
    }

    private static func number(_ text: Substring) -> Int? {
        text.utf8.allSatisfy { (48...57).contains($0) } ? Int(text) : nil
    }

    // MARK: - Times

    /// The first due time after `time`, in a time zone; nil if there is none within twelve years, as for 30 February.
    ///
    /// When the clocks change: if hours are given, each local time is due once. A time that the clocks skip is due at
    /// the moment after the skip, and a time that the clocks show twice is due the first time. With `*` for the hour,
    /// the schedule follows elapsed time: if it is due every ten minutes, it stays so through the repeated hour.
    public func next(after time: WallTime, in zone: ScheduleZone) -> WallTime? {
        let after = Int64(clamping: time.milliseconds.dividedRoundingDown(by: 1_000))
        // The years that the zone's rules and the arithmetic below support.
        guard (-62_000_000_000...250_000_000_000).contains(after) else { return nil }
        let today = (after + zone.offset(at: after)).dividedRoundingDown(by: 86_400)
        for day in (today - 1)...(today + 12 * 366) where matches(day) {
            if let due = hours.isOpen ? passing(day, after, zone) : once(day, after, zone) {
                return WallTime(milliseconds: due * 1_000)
            }
        }
        return nil
    }

    /// The last due time up to `end`. It is found by bisection, so that it takes no longer after a worker was away for
    /// years.
    ///
    /// - Parameter due: a due time that is not after `end`.
    func last(from due: WallTime, through end: WallTime, in zone: ScheduleZone) -> WallTime {
        var (last, end) = (due, end)
        // Due times are whole minutes of UTC.
        while end - last >= 60_000 {
            let middle = last + (end - last) / 2
            if let next = next(after: middle, in: zone), next <= end {
                last = next
            } else if let next = next(after: last, in: zone), next <= middle {
                (last, end) = (next, middle)
            } else {
                return last
            }
        }
        return last
    }

    private func matches(_ day: Int64) -> Bool {
        let date = CivilDate(day: day)
        guard months.contains(date.month) else { return false }
        let ofMonth = daysOfMonth.contains(date.dayOfMonth)
        let ofWeek = weekdays.contains(date.weekday)
        return daysOfMonth.isOpen || weekdays.isOpen ? ofMonth && ofWeek : ofMonth || ofWeek
    }

    /// The next due time on a day if hours are given: each local time is due once.
    private func once(_ day: Int64, _ after: Int64, _ zone: ScheduleZone) -> Int64? {
        for hour in 0..<24 where hours.contains(hour) {
            for minute in 0..<60 where minutes.contains(minute) {
                let due = zone.first(day * 86_400 + Int64(hour * 3_600 + minute * 60))
                if due > after { return due }
            }
        }
        return nil
    }

    /// The next due time on a day with `*` for the hour: the next elapsed minute whose local time matches.
    private func passing(_ day: Int64, _ after: Int64, _ zone: ScheduleZone) -> Int64? {
        let begin = zone.first(day * 86_400)
        let end = zone.first((day + 1) * 86_400)
        var due = begin
        if after >= begin { due += ((after - begin) / 60 + 1) * 60 }
        while due < end {
            let minute = (due + zone.offset(at: due)).dividedRoundingDown(by: 60)
            let ofDay = Int(minute - minute.dividedRoundingDown(by: 1_440) * 1_440)
            if minutes.contains(ofDay % 60), hours.contains(ofDay / 60) { return due }
            due += 60
        }
        return nil
    }
}

/// A day of the Gregorian calendar.
struct CivilDate {
    let month: Int
    let dayOfMonth: Int
    /// 0 is Sunday.
    let weekday: Int

    /// - Parameter day: days since 1 January 1970, within a million years.
    init(day: Int64) {
        weekday = Int(((day + 4) % 7 + 7) % 7)
        // Counted from 1 March of a year divisible by 400, so that the leap day is the last of its year.
        let days = day + 719_468
        let era = days.dividedRoundingDown(by: 146_097)
        let ofEra = days - era * 146_097
        let year = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * year + year / 4 - year / 100)
        let shifted = (5 * ofYear + 2) / 153
        dayOfMonth = Int(ofYear - (153 * shifted + 2) / 5 + 1)
        month = Int(shifted < 10 ? shifted + 3 : shifted - 9)
    }
}

extension Int64 {
    /// - Parameter divisor: positive.
    func dividedRoundingDown(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
