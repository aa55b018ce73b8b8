/// How the end of a response's body is told (RFC 9112, section 6.3).
enum BodyFraming: Equatable {
    /// By `Content-Length`; what no number can hold is the largest there is.
    case length(Int64)
    case chunked
    /// By the end of the connection, so that a whole body looks like one that broke off.
    case untilClose
    /// Headers that contradict each other or can't be read: the end of the body is unknown.
    case unsound

    /// - Parameters:
    ///   - lengths: the value of each `Content-Length` line.
    ///   - encodings: that of each `Transfer-Encoding` line.
    init(lengths: [String], encodings: [String]) {
        let codings = encodings.joined(separator: ",").lowercased().split(separator: ",").map {
            Array($0.utf8).trimmingSpaces()
        }
        switch codings.filter({ $0 != Array("identity".utf8) }) {
        case []: self = Self.length(lengths)
        case [Array("chunked".utf8)]: self = .chunked
        default: self = .unsound
        }
    }

    /// The same number may be said twice; two numbers are one too many.
    private static func length(_ lines: [String]) -> BodyFraming {
        let values = lines.flatMap { $0.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) }
        guard let first = values.first else { return .untilClose }
        let numbers = Set(values.map { Decimal.parse(Array($0).trimmingSpaces()) })
        guard numbers.count == 1, let number = Decimal.parse(Array(first).trimmingSpaces()) else { return .unsound }
        return .length(number)
    }
}
