/// The three date formats of RFC 9110, section 5.6.7.
enum HTTPDate {
    /// Seconds since 1970, or nil for anything else.
    static func parse(_ text: [UInt8]) -> Int64? {
        let words = words(text)
        // Sun, 06 Nov 1994 08:49:37 GMT · Sunday, 06-Nov-94 08:49:37 GMT
        if words.count == 6, words[5] == "GMT" {
            return seconds(year: words[3], month: words[2], day: words[1], time: words[4])
        }
        // Sun Nov  6 08:49:37 1994
        if words.count == 5 {
            return seconds(year: words[4], month: words[1], day: words[2], time: words[3])
        }
        return nil
    }

    /// Nil for a spelling that the standard does not allow.
    static func parseStrictly(_ text: [UInt8]) -> Int64? {
        let shape = String(decoding: text.map(shape), as: UTF8.self)
        let isDay = words(text).first.map { days.contains($0) || longDays.contains($0) } ?? false
        let isLong = words(text).first.map(longDays.contains) ?? false
        guard isDay else { return nil }
        let isExact =
            switch shape.drop(while: { $0 == "a" }) {
            case ", 00 aaa 0000 00:00:00 aaa", " aaa 00 00:00:00 0000", " aaa  0 00:00:00 0000": !isLong
            case ", 00-aaa-00 00:00:00 aaa": isLong
            default: false
            }
        return isExact ? parse(text) : nil
    }

    private static let longDays: Set<String> = [
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
    ]
    private static let days = Set(longDays.map { String($0.prefix(3)) })

    private static func shape(_ byte: UInt8) -> UInt8 {
        switch byte {
        case 0x30...0x39: UInt8(ascii: "0")
        case 0x41...0x5A, 0x61...0x7A: UInt8(ascii: "a")
        default: byte
        }
    }

    private static func words(_ text: [UInt8]) -> [String] {
        text.split(whereSeparator: { $0 == 0x20 || $0 == 0x2D || $0 == 0x2C }).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func seconds(year: String, month: String, day: String, time: String) -> Int64? {
        guard let month = months.firstIndex(of: month), let day = number(day), (1...31).contains(day),
            var year = number(year)
        else { return nil }
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map { number(String($0)) }
        guard clock.count == 3, let hour = clock[0], let minute = clock[1], let second = clock[2],
            hour < 24, minute < 60, second < 61
        else { return nil }
        // Two digits: the RFC says "at most 50 years ahead"; this pivot gives the same for retry dates.
        if year < 100 { year += year < 70 ? 2000 : 1900 }
        return days(year: year, month: month + 1, day: day) * 86400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ text: String) -> Int64? {
        guard text.count <= 4, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }

    /// Days since 1970 in the Gregorian calendar, counted in eras of 400 years that begin in March.
    private static func days(year: Int64, month: Int, day: Int64) -> Int64 {
        let year = month <= 2 ? year - 1 : year
        let era = year / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * Int64((month + 9) % 12) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
