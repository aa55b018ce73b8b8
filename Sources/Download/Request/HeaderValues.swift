/// Parses `Retry-After`: seconds or a date. See RFC 9110, section 10.2.3.
public struct RetryAfter {
    static let longest: Int64 = 3600

    /// The time to wait, 0 s to 1 h; nil for text that is neither seconds nor a date.
    ///
    /// - Parameter now: seconds since 1970; dates are relative to it.
    public static func parse(_ value: String, now: Int64) -> Duration? {
        let text = Array(value.utf8).trimmingSpaces()
        guard !text.isEmpty else { return nil }
        if text.allSatisfy({ (0x30...0x39).contains($0) }) {
            // More digits than an hour can have: clamped before the number could overflow.
            let digits = text.drop { $0 == 0x30 }
            let seconds = digits.count > 5 ? longest : digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
            return .seconds(min(seconds, longest))
        }
        guard let date = HTTPDate.parse(text) else { return nil }
        return .seconds(min(max(date - now, 0), longest))
    }
}

extension [UInt8] {
    /// Without leading and trailing spaces and tabs.
    func trimmingSpaces() -> [UInt8] {
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else {
            return []
        }
        return Array(self[first...last])
    }
}

/// Parses numbers in headers: digits and nothing else.
enum Decimal {
    /// A number too large for an `Int64` becomes its maximum; nil for anything but digits.
    static func parse(_ text: some Collection<UInt8>) -> Int64? {
        guard !text.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in text {
            guard (0x30...0x39).contains(byte) else { return nil }
            let (tens, isLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, isLarger) = tens.addingReportingOverflow(Int64(byte - 0x30))
            value = isLarge || isLarger ? .max : sum
        }
        return value
    }
}

extension Int64 {
    /// The sum, or the largest number if the sum overflows.
    func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? (other < 0 ? .min : .max) : sum
    }
}
