import Glibc

/// A number with this many decimal places, and commas between thousands.
func fixed(_ value: Double, _ digits: Int) -> String {
    let scale = pow(10, Double(digits))
    let scaled = Int((abs(value) * scale).rounded())
    let whole = grouped(scaled / Int(scale))
    let rest = String(scaled % Int(scale))
    let sign = value < 0 && scaled > 0 ? "-" : ""
    return digits == 0 ? sign + whole : sign + whole + "." + String(repeating: "0", count: digits - rest.count) + rest
}

/// A number with commas between thousands.
func grouped(_ value: Int) -> String {
    var digits = String(value)
    var groups: [Substring] = []
    while digits.count > 3 {
        groups.insert(digits.suffix(3), at: 0)
        digits.removeLast(3)
    }
    return ([Substring(digits)] + groups).joined(separator: ",")
}

/// A line of a table: the first column is aligned to the left, the others to the right.
func row(_ cells: [String], widths: [Int]) -> String {
    zip(cells, widths).enumerated().map { column, cell in
        let space = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
        return column == 0 ? cell.0 + space : space + cell.0
    }.joined(separator: " ")
}
