/// Numbers as headers have them: digits and nothing else.
enum Decimal {
    /// What is too large for an `Int64` is its largest value; nil for anything but digits.
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
    /// The sum, or the largest number where that is too small for it.
    func addingSaturated(_ other: Int64) -> Int64 {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? (other < 0 ? .min : .max) : sum
    }
}
