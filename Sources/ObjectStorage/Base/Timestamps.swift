internal import Core
internal import Glibc

extension WallTime {
    static var current: WallTime {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        return WallTime(milliseconds: Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000)
    }

    /// `2026-11-26T09:30:00Z`, with or without a fraction of the second, as in bodies.
    init?(timestamp text: String) {
        let parts = text.split(separator: "T")
        guard parts.count == 2, parts[1].last == "Z" else { return nil }
        let day = parts[0].split(separator: "-")
        let clock = parts[1].dropLast().split(separator: ".")
        guard day.count == 3, let time = clock.first, clock.count <= 2 else { return nil }
        self.init(year: day[0], month: Self.number(day[1], 2), day: day[2], time: time)
    }

    /// `Thu, 26 Nov 2026 09:30:00 GMT`, as in headers.
    init?(httpDate text: String) {
        let words = text.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", let month = Self.months.firstIndex(of: String(words[2])) else {
            return nil
        }
        self.init(year: words[3], month: month + 1, day: words[1], time: words[4])
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private init?(year: Substring, month: Int?, day: Substring, time: Substring) {
        let clock = time.split(separator: ":")
        guard let year = Self.number(year, 4), let month, (1...12).contains(month),
            let day = Self.number(day, 2), (1...31).contains(day), clock.count == 3,
            let hour = Self.number(clock[0], 2), hour < 24, let minute = Self.number(clock[1], 2), minute < 60,
            let second = Self.number(clock[2], 2), second < 61
        else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year - 1_900), Int32(month - 1), Int32(day))
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (Int32(hour), Int32(minute), Int32(second))
        self.init(clamping: Int64(timegm(&parts)) * 1_000)
    }

    /// Exactly this many digits.
    private static func number(_ text: Substring, _ digits: Int) -> Int? {
        text.utf8.count == digits && text.utf8.allSatisfy { (48...57).contains($0) } ? Int(text) : nil
    }
}
