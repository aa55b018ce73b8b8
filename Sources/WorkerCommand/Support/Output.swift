import Core
import FoundationEssentials
import Jobs

/// Formats results for people and for scripts.
enum Output {
    /// `1 file`, `2 files`.
    static func count(_ number: some BinaryInteger, _ word: String, _ plural: String? = nil) -> String {
        "\(number) \(number == 1 ? word : plural ?? word + "s")"
    }

    static func json(_ value: some Encodable, pretty: Bool = false) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting =
            pretty ? [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes] : [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    /// Columns as wide as their widest cell; numbers are right-aligned.
    static func table(_ header: [String], _ rows: [[String]], right: Set<Int> = []) -> [String] {
        let all = [header] + rows
        let widths = header.indices.map { column in all.map { TextWidth.columns($0[column]) }.max() ?? 0 }
        return all.map { row in
            row.indices.map { column in
                let pad = String(repeating: " ", count: widths[column] - TextWidth.columns(row[column]))
                return right.contains(column) ? pad + row[column] : row[column] + pad
            }.joined(separator: "  ").trimmingSuffix { $0 == " " }
        }
    }

    /// A cell of RFC 4180.
    static func csv(_ cells: [String?]) -> String {
        cells.map { cell in
            let text = cell ?? ""
            guard text.contains(where: { $0 == "," || $0 == "\"" || $0 == "\n" || $0 == "\r" }) else { return text }
            return "\"" + text.replacing("\"", with: "\"\"") + "\""
        }.joined(separator: ",")
    }

    static func bytes(_ count: Int64) -> String {
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        var value = Double(count)
        var unit = 0
        while value >= 1_024, unit < units.count - 1 {
            value /= 1_024
            unit += 1
        }
        return unit == 0 ? "\(count) B" : "\(fixed(value, 1)) \(units[unit])"
    }

    static func bytes(perSecond rate: Double) -> String { "\(bytes(Int64(min(max(rate, 0), 1e18))))/s" }

    /// `1 file`, `2 files`.
    static func count(_ count: Int, _ noun: String) -> String { count == 1 ? "1 \(noun)" : "\(count) \(noun)s" }

    static func duration(seconds: Double) -> String {
        let total = Int(min(max(seconds.isFinite ? seconds : 0, 0), 1e12).rounded())
        let (hours, minutes, rest) = (total / 3_600, total / 60 % 60, total % 60)
        return hours > 0 ? "\(hours):\(two(minutes)):\(two(rest))" : "\(minutes):\(two(rest))"
    }

    static func fixed(_ value: Double, _ digits: Int) -> String {
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        // SQL users can write any number into a table, so it is clamped.
        let scaled = Int64(min(max(value.isFinite ? value * scale : 0, -1e18), 1e18).rounded())
        guard digits > 0 else { return String(scaled) }
        let fraction = String(abs(scaled) % Int64(scale))
        let sign = scaled < 0 ? "-" : ""
        return
            "\(sign)\(abs(scaled) / Int64(scale)).\(String(repeating: "0", count: digits - fraction.count))\(fraction)"
    }

    /// UTC milliseconds as ISO text.
    static func time(_ milliseconds: Int64) -> String {
        Date(timeIntervalSince1970: Double(milliseconds) / 1_000).formatted(.iso8601)
    }

    static func time(_ time: WallTime) -> String { self.time(time.milliseconds) }

    private static func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
}

extension String {
    fileprivate func trimmingSuffix(while predicate: (Character) -> Bool) -> String {
        var end = endIndex
        while end > startIndex, predicate(self[index(before: end)]) { end = index(before: end) }
        return String(self[..<end])
    }
}
