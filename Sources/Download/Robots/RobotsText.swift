/// The rules of a robots.txt that apply to one robot. See RFC 9309.
struct RobotsText: Sendable, Equatable {
    private struct Rule: Sendable, Equatable {
        let pattern: [UInt8]
        let isAllowed: Bool
    }

    private var rules: [Rule] = []

    static let allowsAll = RobotsText()

    /// Approximate size in memory.
    var bytes: Int { rules.reduce(0) { $0 + $1.pattern.count + 64 } }

    private init() {}

    /// - Parameter agent: the product's name, in lower case.
    init(_ bytes: some Sequence<UInt8>, agent: String) {
        var ours: [Rule] = []
        var rulesForAll: [Rule] = []
        var hasOurs = false
        // Consecutive user-agent lines begin one group.
        var (isOurs, isEverybodys, isInNames) = (false, false, false)
        let all = Array(bytes)
        // Some editors begin a file with a byte order mark.
        let text = all.starts(with: [0xEF, 0xBB, 0xBF]) ? all.dropFirst(3) : all[...]
        for line in text.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            guard let (name, value) = Self.field(line) else { continue }
            switch name {
            case "user-agent":
                if !isInNames { (isOurs, isEverybodys) = (false, false) }
                isInNames = true
                let token = String(decoding: value.prefix(while: Self.isToken), as: UTF8.self).lowercased()
                if token == agent { (isOurs, hasOurs) = (true, true) }
                if value.first == UInt8(ascii: "*") { isEverybodys = true }
            case "allow", "disallow":
                isInNames = false
                // A rule without a value has no effect.
                guard !value.isEmpty else { continue }
                let rule = Rule(pattern: Self.normal(value), isAllowed: name == "allow")
                if isOurs { ours.append(rule) }
                if isEverybodys { rulesForAll.append(rule) }
            // Other records belong to no group, and do not end one (RFC 9309, section 2.2.4).
            default: break
            }
        }
        rules = hasOurs ? ours : rulesForAll
    }

    /// Whether the rules allow a path with its query. The longest matching rule decides; of two equally long rules the
    /// allowing rule decides.
    func allows(_ path: String) -> Bool {
        let path = Self.normal(Array(path.utf8)[...])
        if path == Array("/robots.txt".utf8) { return true }
        var best: Rule?
        var steps = Self.maxSteps
        for rule in rules where Self.matches(rule.pattern, path, &steps) {
            guard let known = best else {
                best = rule
                continue
            }
            let isLonger = rule.pattern.count > known.pattern.count
            if isLonger || (rule.pattern.count == known.pattern.count && rule.isAllowed) { best = rule }
        }
        // Rules that exceed the limit of steps forbid the path.
        return steps > 0 && best?.isAllowed ?? true
    }

    /// Maximum number of byte comparisons for one path; real rules need far fewer.
    private static let maxSteps = 16_000_000

    private static func field(_ line: ArraySlice<UInt8>) -> (String, ArraySlice<UInt8>)? {
        let text = line.prefix { $0 != UInt8(ascii: "#") }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let name = String(decoding: Array(text[..<colon]).trimmingSpaces(), as: UTF8.self).lowercased()
        return (name, Array(text[(colon + 1)...]).trimmingSpaces()[...])
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2D || byte == 0x5F
    }

    /// Normalises percent-encoding: letters and digits decoded, the rest in capitals.
    private static func normal(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            var value = byte
            var isEncoded = byte >= 0x80
            if byte == UInt8(ascii: "%"), let high = hex(rest.first), let low = hex(rest.dropFirst().first) {
                value = high << 4 | low
                isEncoded = !(isToken(value) || (0x30...0x39).contains(value) || value == 0x2E || value == 0x7E)
                rest = rest.dropFirst(2)
            }
            result += isEncoded ? [0x25, digits[Int(value >> 4)], digits[Int(value & 15)]] : [value]
        }
        return result
    }

    private static func hex(_ byte: UInt8?) -> UInt8? {
        byte.flatMap { Character(UnicodeScalar($0)).hexDigitValue }.map(UInt8.init)
    }

    /// `*` matches anything, `$` at the end matches the end. Backtracking returns only to the last `*`, so no pattern
    /// takes longer than its length times the path's length.
    private static func matches(_ pattern: [UInt8], _ path: [UInt8], _ steps: inout Int) -> Bool {
        let isWhole = pattern.last == UInt8(ascii: "$")
        let pattern = isWhole ? pattern.dropLast() : pattern[...]
        var (at, index) = (pattern.startIndex, 0)
        var star: (at: Int, index: Int)?
        while steps > 0 {
            steps -= 1
            if at == pattern.endIndex, !isWhole || index == path.count { return true }
            if at < pattern.endIndex, pattern[at] == UInt8(ascii: "*") {
                at += 1
                star = (at, index)
            } else if at < pattern.endIndex, index < path.count, pattern[at] == path[index] {
                (at, index) = (at + 1, index + 1)
            } else if let last = star, last.index < path.count {
                star = (last.at, last.index + 1)
                (at, index) = (last.at, last.index + 1)
            } else {
                return false
            }
        }
        return false
    }
}
