import ArgumentParser
import Core
import Jobs

/// One setting, declared once: its spelling, its meaning, its default, and the parser of its value.
///
/// The same text is read from a flag (`--max-body 64MiB`), from the environment (`WORKER_MAX_BODY=64MiB`) and from a
/// configuration file (`max-body: 64MiB`).
struct Setting<Value: Sendable>: Sendable {
    /// The flag's name without dashes: `per-host`.
    let name: String
    let help: String
    /// The placeholder for the value in the help: `bytes`, `time`.
    let placeholder: String
    /// The default, as a person would write it; nil if there is none.
    var standard: String?
    /// The default's description in the help, if ``standard`` is not enough.
    var standardText: String?
    /// Whether its values may be secrets; output hides them.
    var isSecret = false
    /// The separator of a list's elements in the environment and in one line of a file.
    var separator: Character = ","
    /// Parses a value, or throws a sentence that says what would be right.
    let read: @Sendable (String) throws(SettingsError) -> Value

    /// `WORKER_PER_HOST`.
    var variable: String { "WORKER_" + name.uppercased().replacing("-", with: "_") }

    fileprivate var argumentHelp: ArgumentHelp {
        let text = (standardText ?? standard).map { " (\($0))" } ?? ""
        // The default goes before the sentence's final full stop.
        let sentence = help.hasSuffix(".") ? "\(help.dropLast())\(text)." : "\(help)\(text)"
        return ArgumentHelp(sentence, valueName: placeholder)
    }
}

/// A setting of any type, by its name. The configuration file is checked against these.
protocol NamedSetting: Sendable {
    var name: String { get }
    var variable: String { get }
    var standard: String? { get }
    var standardText: String? { get }
    var isSecret: Bool { get }
    var separator: Character { get }
    /// Throws if the text cannot be parsed.
    func check(_ text: String) throws(SettingsError)
}

extension Setting: NamedSetting {
    func check(_ text: String) throws(SettingsError) { _ = try read(text) }
}

// MARK: - Kinds of values

extension Setting where Value == Int {
    static func whole(
        _ name: String, _ standard: Int?, in range: ClosedRange<Int>, _ help: String, standardText: String? = nil,
    ) -> Setting {
        Setting(
            name: name, help: help, placeholder: "n", standard: standard.map(String.init), standardText: standardText
        ) {
            text throws(SettingsError) in
            guard let value = Int(text), range.contains(value) else {
                throw SettingsError(
                    "\(name) must be a whole number from \(range.lowerBound) to \(range.upperBound), not '\(text)'.")
            }
            return value
        }
    }
}

extension Setting where Value == Int64 {
    /// A number of bytes with its unit: `500B`, `64MiB`, `1.5 GB`. Without a unit, 100 might be meant as GB.
    static func bytes(
        _ name: String, _ standard: String?, _ help: String, atLeast least: Int64 = 0, standardText: String? = nil,
    ) -> Setting {
        Setting(name: name, help: help, placeholder: "bytes", standard: standard, standardText: standardText) {
            text throws(SettingsError) in
            let lower = text.lowercased().filter { $0 != " " }
            guard let value = Self.amount(lower, in: Self.sizes, below: 9e18), value >= least else {
                throw SettingsError(
                    "\(name) must be a number of bytes such as 64MiB, not '\(text)'. The units are: B, KiB, MiB, GiB, TiB, kB, "
                        + "MB, GB, TB. The range is \(least)\(least > 0 ? "B" : "") to 9000000TB.")
            }
            return value
        }
    }

    /// Milliseconds, from a number with the unit `ms`, `s`, `m`, `h` or `d`; a thousand years at most. Without a unit, 30
    /// might be meant as days.
    ///
    /// - Parameter forEver: the words for a time without an end, which is -1.
    static func time(
        _ name: String, _ standard: String?, _ help: String, in range: ClosedRange<Int64> = 0...Int64.max,
        forEver: [String] = [], standardText: String? = nil,
    ) -> Setting {
        Setting(name: name, help: help, placeholder: "time", standard: standard, standardText: standardText) {
            text throws(SettingsError) in
            if forEver.contains(text) { return -1 }
            let (least, most) = (max(0, range.lowerBound), min(range.upperBound, LimitsRecord.longestAge))
            guard let value = Self.amount(text, in: Self.spans, below: 9e18), (least...most).contains(value) else {
                let words = forEver.map { ", or '\($0)' for ever" }.first ?? ""
                let near = Self.nearTime(to: text).map { " Did you mean \($0)?" } ?? ""
                throw SettingsError(
                    "\(name) must be a time such as 15s, 500ms or 7d\(words), not '\(text)'.\(near) The units are: ms, s, m, "
                        + "h, d. The range is \(Self.shown(least)) to \(Self.shown(most)).")
            }
            return value
        }
    }

    /// A time as its flag takes it: `5s`, `1500ms`, `0`.
    static func shown(_ milliseconds: Int64) -> String {
        let units: [(name: String, length: Int64)] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)]
        let unit = units.first { milliseconds % $0.length == 0 } ?? ("ms", 1)
        return milliseconds == 0 ? "0" : "\(milliseconds / unit.length)\(unit.name)"
    }

    /// `7d` for `7days`.
    private static func nearTime(to text: String) -> String? {
        let number = text.prefix { $0.isNumber }
        let word = text.dropFirst(number.count).drop { $0 == " " }.lowercased()
        let units = [
            ("d", ["day", "days"]), ("h", ["hour", "hours", "hr", "hrs"]), ("m", ["min", "mins", "minute", "minutes"]),
            ("s", ["sec", "secs", "second", "seconds"]), ("ms", ["msec", "millisecond", "milliseconds"]),
        ]
        guard !number.isEmpty, let unit = units.first(where: { $0.1.contains(word) }) else { return nil }
        return number + unit.0
    }

    private static var sizes: [(String, Double)] {
        [
            ("kib", 1_024), ("mib", 1_048_576), ("gib", 1_073_741_824), ("tib", 1_099_511_627_776), ("kb", 1e3),
            ("mb", 1e6), ("gb", 1e9), ("tb", 1e12), ("k", 1_024), ("m", 1_048_576), ("g", 1_073_741_824), ("b", 1),
        ]
    }

    private static var spans: [(String, Double)] { [("ms", 1), ("s", 1e3), ("m", 6e4), ("h", 3.6e6), ("d", 8.64e7)] }

    /// Parses a decimal number that isn't negative, and multiplies it by its unit. Infinity and NaN are refused.
    private static func amount(
        _ text: String, in units: [(String, Double)], below limit: Double,
    ) -> Int64? {
        // Zero needs no unit.
        if text == "0" { return 0 }
        guard let unit = units.first(where: { text.hasSuffix($0.0) }) else { return nil }
        let digits = text.dropLast(unit.0.count)
        guard digits.utf8.allSatisfy({ (48...57).contains($0) || $0 == 46 }), let number = Double(digits) else {
            return nil
        }
        let value = number * unit.1
        return value <= limit ? Int64(value) : nil
    }
}

extension Setting where Value == String {
    static func text(
        _ name: String, _ standard: String? = nil, _ placeholder: String, _ help: String, isSecret: Bool = false,
        separator: Character = ",",
    ) -> Setting {
        Setting(
            name: name, help: help, placeholder: placeholder, standard: standard, isSecret: isSecret,
            separator: separator
        ) { text throws(SettingsError) in text }
    }
}

extension Setting where Value == String {
    /// The same setting, which refuses an empty text.
    var notEmpty: Setting {
        var setting = Setting(name: name, help: help, placeholder: placeholder) { [name] text throws(SettingsError) in
            guard text.contains(where: { !$0.isWhitespace }) else {
                throw SettingsError("\(name) must not be empty; leave it out for the usual one.")
            }
            return text
        }
        (setting.standard, setting.standardText, setting.isSecret) = (standard, standardText, isSecret)
        return setting
    }
}

extension Setting where Value == Bool {
    /// A switch; the file and the environment set it to `true` or `false`.
    static func flag(_ name: String, _ help: String) -> Setting {
        Setting(name: name, help: help, placeholder: "", standard: "false", standardText: "off") {
            text throws(SettingsError) in
            switch text.lowercased() {
            case "true", "yes", "on", "1": return true
            case "false", "no", "off", "0": return false
            default:
                throw SettingsError(
                    "\(name) must be true or false, not '\(text)'."
                        + NearestWord.question(text, among: ["true", "false", "yes", "no"]))
            }
        }
    }
}

extension Setting where Value: CaseIterable & RawRepresentable<String> {
    static func choice(_ name: String, _ standard: Value?, _ help: String, placeholder: String = "word") -> Setting {
        Setting(name: name, help: help, placeholder: placeholder, standard: standard?.rawValue) {
            text throws(SettingsError) in
            guard let value = Value(rawValue: text) else {
                let question = NearestWord.question(text, among: Value.allCases.map(\.rawValue))
                throw SettingsError("\(name) must be \(Self.words), not '\(text)'.\(question)")
            }
            return value
        }
    }

    /// `used, modified or created`.
    private static var words: String {
        let all = Value.allCases.map(\.rawValue)
        return all.dropLast().joined(separator: ", ") + " or " + (all.last ?? "")
    }
}

// MARK: - As flags

extension Option {
    /// A flag for the setting. Without it the environment, the file or the default applies, in this order.
    init<T: Sendable>(_ setting: Setting<T>) where Value == T? {
        // Values may begin with a dash, as -1 does.
        self.init(
            name: .customLong(setting.name), parsing: .unconditional, help: setting.argumentHelp,
            transform: { try setting.read($0) })
    }

    /// A flag that may be repeated.
    init<T: Sendable>(wrappedValue: [T], _ setting: Setting<T>) where Value == [T] {
        self.init(
            wrappedValue: wrappedValue, name: .customLong(setting.name), parsing: .unconditionalSingleValue,
            help: setting.argumentHelp,
            transform: { try setting.read($0) })
    }
}

extension Flag where Value == Bool {
    init(wrappedValue: Bool, _ setting: Setting<Bool>) {
        self.init(wrappedValue: wrappedValue, name: .customLong(setting.name), help: ArgumentHelp(setting.help))
    }
}
