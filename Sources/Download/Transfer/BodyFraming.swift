/// How a response marks the end of its body (RFC 9112, section 6.3).
enum BodyFraming: Equatable {
    /// By `Content-Length`; a number that overflows becomes the maximum.
    case length(Int64)
    case chunked
    /// By the end of the connection, so an interrupted body looks like a complete one.
    case untilClose
    /// The headers contradict each other or cannot be parsed: the end of the body is unknown.
    case unsound

    /// - Parameters:
    ///   - lengths: the value of each `Content-Length` line.
    ///   - encodings: the value of each `Transfer-Encoding` line.
    init(lengths: [String], encodings: [String]) {
        guard !encodings.isEmpty else {
            self = Self.length(lengths)
            return
        }
        let codings = encodings.joined(separator: ",").lowercased().split(separator: ",").map {
            Array($0.utf8).trimmingSpaces()
        }
        switch codings.filter({ $0 != Array("identity".utf8) }) {
        case []: self = Self.length(lengths)
        case [Array("chunked".utf8)]: self = .chunked
        default: self = .unsound
        }
    }

    /// The same number may be given twice; two different numbers are an error.
    private static func length(_ lines: [String]) -> BodyFraming {
        // What nearly every server sends: one line with one number.
        if lines.count == 1, let number = Decimal.parse(Array(lines[0].utf8)) { return .length(number) }
        let values = lines.flatMap { $0.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) }
        guard let first = values.first else { return .untilClose }
        let numbers = Set(values.map { Decimal.parse(Array($0).trimmingSpaces()) })
        guard numbers.count == 1, let number = Decimal.parse(Array(first).trimmingSpaces()) else { return .unsound }
        return .length(number)
    }
}
