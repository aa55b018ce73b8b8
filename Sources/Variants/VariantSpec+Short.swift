internal import Core

// The short form: NAME=WIDTHxHEIGHT[,fit][,position][,enlarge][,format][,qN][,option[:value]]…[,effect[:value…]]…. The
// parts after the size may stand in any order; effects are applied in the order in which they stand.

extension VariantSpec {
    /// - Parameter text: one variant in short, as in `thumb=320x240,cover,webp,q80`; either side of `x` may be empty.
    /// - Throws: also for several densities, since each is a variant of its own; ``parseList(_:)`` reads those.
    public static func parse(_ text: String) throws(VariantSpecError) -> VariantSpec {
        try only(parseShort(text), of: text)
    }

    static func only(_ specs: [VariantSpec], of text: String) throws(VariantSpecError) -> VariantSpec {
        guard let spec = specs.first, specs.count == 1 else {
            throw VariantSpecError("\(VariantSpecError.quoted(text)): these are \(specs.count) variants, not one")
        }
        return spec
    }

    /// - Returns: one spec for each density.
    static func parseShort(_ text: String) throws(VariantSpecError) -> [VariantSpec] {
        let halves = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2 else {
            throw VariantSpecError("\(VariantSpecError.quoted(text)): there is no '='; write it as NAME=320x240")
        }
        guard !text.hasSuffix(",") else {
            throw VariantSpecError(
                "\(VariantSpecError.quoted(text)): it ends with a comma; write a variant without spaces, as in "
                    + "thumb=320x240,webp")
        }
        var parts = halves[1].split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        let size = parts.removeFirst()
        do throws(VariantSpecError) {
            return try parse(name: String(halves[0]), size: size, parts: parts)
        } catch {
            throw VariantSpecError("\(VariantSpecError.quoted(text)): \(error)")
        }
    }

    private static func parse(
        name: String, size: String, parts: [String],
    ) throws(VariantSpecError) -> [VariantSpec] {
        var form = ShortForm(spec: VariantSpec(unchecked: name))
        (form.spec.width, form.spec.height) = try sides(size)
        for part in parts { try form.take(part) }
        return try form.spec.checked().at(form.densities)
    }

    private static func sides(_ size: String) throws(VariantSpecError) -> (Int?, Int?) {
        let sides = size.split(separator: "x", omittingEmptySubsequences: false)
        guard sides.count == 2 else {
            throw VariantSpecError(
                "'\(VariantSpecError.quoted(size))' is not a size; write WIDTHxHEIGHT, as in 320x240, 320x or x240")
        }
        return (try number(sides[0], in: size), try number(sides[1], in: size))
    }

    private static func number(_ digits: Substring, in size: String) throws(VariantSpecError) -> Int? {
        guard !digits.isEmpty else { return nil }
        guard let value = plainNumber(digits) else {
            throw VariantSpecError(
                "'\(VariantSpecError.quoted(String(digits)))' in '\(VariantSpecError.quoted(size))' is no number of "
                    + "pixels from 1 to 65535; write WIDTHxHEIGHT in whole pixels, as in 320x240")
        }
        return value
    }

    /// Accepts digits only; `Int("+5")` would accept a sign.
    private static func plainNumber(_ digits: Substring) -> Int? {
        let isPlain = digits.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return isPlain ? Int(digits) : nil
    }

    /// Reads the parts after the size one by one. Only effects may stand more than once.
    private struct ShortForm {
        var spec: VariantSpec
        private(set) var densities: Densities?
        private var given: Set<String> = []

        init(spec: VariantSpec) { self.spec = spec }

        mutating func take(_ part: String) throws(VariantSpecError) {
            if let value = Fit(rawValue: part) {
                try once("a fit", part)
                spec.fit = value
            } else if let value = Output(word: part) {
                try once("a format", part)
                spec.format = value
            } else if part == "enlarge" {
                try once("'enlarge'", part)
                spec.enlarge = true
            } else if part.first == "q", let value = plainNumber(part.dropFirst()) {
                try once("a quality", part)
                spec.quality = value
            } else if let value = try Position(short: part) {
                try once("a position", part)
                spec.position = value
            } else if let value = try Densities(short: part) {
                try once("densities", part)
                densities = value
            } else if try !takeOption(part) {
                guard let effect = try Effect(short: part) else { throw Self.unknown(part) }
                spec.effects.append(effect)
            }
        }

        private mutating func takeOption(_ part: String) throws(VariantSpecError) -> Bool {
            let halves = part.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard let option = VariantOption(rawValue: halves[0]) else { return false }
            try once("'\(option.rawValue)'", part)
            if halves.count == 2 {
                spec.options.set(option, try option.parameter.read(halves[1], of: option.rawValue))
            } else if let alone = option.alone {
                spec.options.set(option, alone)
            } else {
                throw VariantSpecError("'\(part)' needs a value; write \(part):VALUE")
            }
            return true
        }

        private mutating func once(_ what: String, _ part: String) throws(VariantSpecError) {
            guard !given.insert(what).inserted else { return }
            throw VariantSpecError("'\(part)' gives \(what) a second time; leave one of them out")
        }

        private static func unknown(_ part: String) -> VariantSpecError {
            guard !part.isEmpty else { return VariantSpecError("there is nothing between two commas; leave one out") }
            let shown = VariantSpecError.quoted(part)
            guard let name = part.split(separator: ":").first, part.contains(":") else {
                return VariantSpecError("unknown part '\(shown)'; \(Suggestion.forPart(part))")
            }
            return VariantSpecError("unknown part '\(shown)'; \(Suggestion.forPart(String(name)))")
        }
    }
}

/// The words that may stand in a variant, and the nearest of them to a misspelt word.
enum Suggestion {
    private static let words =
        VariantSpec.Fit.allCases.map(\.rawValue) + ["enlarge", "jpg", "apng"]
        + VariantSpec.Output.allCases.map(\.rawValue) + Position.words
        + VariantOption.allCases.map(\.rawValue) + EffectKind.allCases.map(\.rawValue)

    /// Words of other programs, and ours for them.
    private static let habits = [
        "gray": "greyscale", "grey": "greyscale", "grayscale": "greyscale", "bw": "greyscale", "mono": "greyscale",
        "fit": "contain", "stretch": "fill", "upscale": "enlarge", "grow": "enlarge", "middle": "centre",
    ]

    static func forPart(_ part: String) -> String {
        if let number = Int(part.trimmingPrefix("quality:").trimmingPrefix("quality=").trimmingPrefix("q=")) {
            return (1...100).contains(number)
                ? "did you mean q\(number)? A quality is q1 to q100" : "a quality is q1 to q100"
        }
        if part.first == "q", part.count > 1, part.dropFirst().allSatisfy(\.isNumber) {
            return "a quality is q1 to q100"
        }
        if part == "q" || part == "quality" { return "a quality is q1 to q100, such as q80" }
        if let word = habits[part.lowercased()] { return "did you mean \(word)?" }
        if let word = NearestWord.find(part, among: words) { return "did you mean \(word)?" }
        return "a part is a fit, a format, a position, a quality such as q80, an option or an effect; "
            + "'worker enqueue --help' lists them"
    }
}
