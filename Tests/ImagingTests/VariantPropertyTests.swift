import Core
import FoundationEssentials
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// Laws of the two ways of writing a variant and of its identity, on specs made from the tables at random.
@Suite(.timeLimit(.minutes(15)))
struct VariantPropertyTests {
    @Test(arguments: 0..<40)
    func shortFormAndJSONOfAVariantAreEqual(seed: UInt64) throws {
        var maker = SpecMaker(seed: seed)
        for _ in 0..<25 {
            let parts = maker.parts()
            let spec = try VariantSpec.parse(parts.text)
            let json = try JSONEncoder().encode(spec)
            #expect(try JSONDecoder().decode(VariantSpec.self, from: json) == spec)
            #expect(try VariantSpec.parse(maker.shuffled(parts).text).canonical == spec.canonical)
            #expect(try VariantSpec.parse("other" + parts.text.dropFirst(4)).canonical == spec.canonical)
        }
    }

    @Test(arguments: 0..<40)
    func anotherValueGivesAnotherIdentity(seed: UInt64) throws {
        var maker = SpecMaker(seed: seed &+ 1_000)
        for _ in 0..<25 {
            let parts = maker.parts()
            let spec = try VariantSpec.parse(parts.text)
            guard let changed = maker.changed(parts) else { continue }
            #expect(try VariantSpec.parse(changed.text).canonical != spec.canonical, "\(parts.text) \(changed.text)")
        }
    }

    /// Size, fit, position, quality and every option.
    @Test(arguments: 0..<40)
    func anotherPartGivesAnotherIdentity(seed: UInt64) throws {
        var maker = SpecMaker(seed: seed &+ 2_000)
        for _ in 0..<25 {
            let parts = maker.parts()
            let spec = try VariantSpec.parse(parts.text)
            for changed in maker.otherParts(parts) {
                #expect(
                    try VariantSpec.parse(changed.text).canonical != spec.canonical, "\(parts.text) \(changed.text)")
            }
        }
    }

    /// The order of the formats of auto does not count.
    @Test(arguments: 0..<40)
    func theFormatsOfAutoAreASet(seed: UInt64) throws {
        var maker = SpecMaker(seed: seed &+ 3_000)
        for _ in 0..<25 {
            let (formats, rest) = maker.choice()
            func spec(_ formats: some Collection<VariantSpec.Output>) throws -> VariantSpec {
                try VariantSpec.parse("name=\(rest),auto:\(formats.map(\.rawValue).joined(separator: "+"))")
            }
            let first = try spec(formats)
            #expect(try spec(formats.reversed() + formats).canonical == first.canonical)
            let json = try JSONEncoder().encode(first)
            #expect(try JSONDecoder().decode(VariantSpec.self, from: json) == first)
            #expect(try spec(formats.dropLast()).canonical != first.canonical, "\(formats) \(rest)")
            // One format is no choice.
            #expect(
                try spec(formats.prefix(1)).canonical
                    == VariantSpec.parse("name=\(rest),\(formats[0].rawValue)").canonical)
        }
    }
}

/// Parts of a variant's short form.
struct SpecParts {
    var size: String
    /// In any order.
    var loose: [String]
    /// In theirs.
    var effects: [(kind: EffectKind, values: [String])]

    var text: String {
        let effects = effects.map { ([$0.kind.rawValue] + $0.values).joined(separator: ":") }
        return "name=" + ([size] + loose + effects).joined(separator: ",")
    }
}

extension SpecParts {
    private var format: VariantSpec.Output? { VariantSpec.Output(word: loose[1]) }

    /// Of what is lossless no quality matters.
    var isLossless: Bool { loose.contains { $0 == "lossless:yes" || $0.hasPrefix("near-lossless:") } }

    /// Whether another value of an option means something beside the rest.
    func canTell(_ option: VariantOption, _ before: String, _ after: String) -> Bool {
        guard before != after else { return false }
        let isAnimated = format?.isAnimated == true && !effects.contains { $0.kind == .command }
        return switch option {
        case .background: format == .jpeg
        case .keepProfile: format != .gif
        case .decodeFirstFrameOnly: isAnimated
        case .transformAnimatedImage:
            isAnimated && effects.contains { $0.kind == .invert } && !loose.contains("decode-first-frame-only:yes")
        case .lossless: !loose.contains { $0.hasPrefix("near-lossless:") }
        // AVIF's colours are whole where nothing is lost, and what is chosen is one of the two.
        case .chroma: !loose.contains("lossless:yes") && Set([before, after]) == ["chroma:420", "chroma:444"]
        case .colours: format == .gif
        case .effort: format != .gif && (format != .png || loose.contains { $0.hasPrefix("colours:") })
        default: true
        }
    }
}

struct SpecMaker {
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func parts() -> SpecParts {
        let size = "\(Int.random(in: 1...4_000, using: &random))x\(Int.random(in: 1...4_000, using: &random))"
        let format = pick(VariantSpec.Output.allCases)
        var loose = [pick(["cover", "contain"]), format.rawValue]
        loose.append(pick(Gravity.allCases.map(\.rawValue) + ["attention", "entropy", "focus:0.25:0.75"]))
        if Bool.random(using: &random) { loose.append("enlarge") }
        if format.defaultQuality != nil { loose.append("q\(Int.random(in: 1...100, using: &random))") }
        for option in VariantOption.allCases where option != .auto && option.applies(to: format) {
            guard Bool.random(using: &random) else { continue }
            let range = option == .effort ? format.efforts : nil
            let value = range.map { "\(Int.random(in: $0, using: &random))" } ?? self.value(of: option.parameter)
            loose.append("\(option.rawValue):\(value)")
        }
        let kinds = EffectKind.allCases.filter { $0 != .resize }
        let effects = (0..<Int.random(in: 0...5, using: &random)).map { _ in
            let kind = pick(kinds)
            return (kind: kind, values: kind.parameters.map { value(of: $0) })
        }
        return SpecParts(size: size, loose: loose, effects: effects)
    }

    /// Two formats or more, and a box with options that each of them knows.
    mutating func choice() -> ([VariantSpec.Output], String) {
        let all = VariantSpec.Output.stillFormats.shuffled(using: &random)
        let formats = Array(all.prefix(Int.random(in: 2...all.count, using: &random)))
        var loose = ["\(Int.random(in: 1...4_000, using: &random))x", pick(["cover", "inside"])]
        if formats.allSatisfy({ $0.defaultQuality != nil }), Bool.random(using: &random) {
            loose.append("q\(Int.random(in: 1...100, using: &random))")
        }
        for option in VariantOption.allCases where ![.auto, .coder, .effort].contains(option) {
            guard formats.allSatisfy(option.applies), Bool.random(using: &random) else { continue }
            loose.append("\(option.rawValue):\(value(of: option.parameter))")
        }
        return (formats, loose.joined(separator: ","))
    }

    mutating func shuffled(_ parts: SpecParts) -> SpecParts {
        var parts = parts
        parts.loose.shuffle(using: &random)
        return parts
    }

    /// With one value of one effect replaced by another, or an effect more.
    mutating func changed(_ parts: SpecParts) -> SpecParts? {
        var parts = parts
        guard let place = parts.effects.indices.randomElement(using: &random) else {
            parts.effects.append((kind: .invert, values: []))
            return parts
        }
        let kind = parts.effects[place].kind
        guard let which = kind.parameters.indices.randomElement(using: &random) else { return nil }
        let before = parts.effects[place].values[which]
        for _ in 0..<50 {
            let other = value(of: kind.parameters[which])
            var changed = parts.effects[place].values
            changed[which] = other
            guard other != before, Self.canTell(kind, parts.effects[place].values, changed, which) else { continue }
            parts.effects[place].values = changed
            return parts
        }
        return nil
    }

    /// Whether a parameter that is changed means something beside the others.
    private static func canTell(_ kind: EffectKind, _ before: [String], _ after: [String], _ which: Int) -> Bool {
        let numbers = before.map { Double($0) ?? 0 }
        return switch (kind, which) {
        // A whole turn more is the same angle.
        case (.rotate, 0): (numbers[0] - (Double(after[0]) ?? 0)).truncatingRemainder(dividingBy: 360) != 0
        case (.rotate, _): numbers[0].truncatingRemainder(dividingBy: 90) != 0
        case (.round, 1): numbers[0] > 0
        case (.round, 3): numbers[2] > 0
        // What tints nothing has no mode.
        case (.tint, 1): before[0] != "transparent"
        case (.sharpen, 0): numbers[1] > 0
        // What can't be seen lies nowhere.
        case (.watermark, let which) where which != 2: numbers[2] > 0
        default: true
        }
    }

    /// Each with one thing other than in `parts`, as many as there are things that mean something.
    mutating func otherParts(_ parts: SpecParts) -> [SpecParts] {
        var others: [SpecParts] = []
        func add(_ change: (inout SpecParts) -> Void) {
            var other = parts
            change(&other)
            others.append(other)
        }
        let sides = parts.size.split(separator: "x").compactMap { Int($0) }
        add { $0.size = "\(sides[0] % 4_000 + 1)x\(sides[1])" }
        add { $0.size = "\(sides[0])x\(sides[1] % 4_000 + 1)" }
        add { $0.loose[0] = parts.loose[0] == "cover" ? "contain" : "cover" }
        // Of all that is seen no part is chosen: in a box that contains it, that is the middle.
        add { $0.loose[2] = parts.loose[2] == "north" ? "south" : "north" }
        add { other in
            if let place = other.loose.firstIndex(of: "enlarge") {
                other.loose.remove(at: place)
            } else {
                other.loose.append("enlarge")
            }
        }
        if !parts.isLossless,
            let place = parts.loose.firstIndex(where: { $0.first == "q" && Int($0.dropFirst()) != nil })
        {
            add { $0.loose[place] = parts.loose[place] == "q7" ? "q8" : "q7" }
        }
        for option in VariantOption.allCases {
            guard let place = parts.loose.firstIndex(where: { $0.hasPrefix("\(option.rawValue):") }) else { continue }
            let range = option == .effort ? VariantSpec.Output(word: parts.loose[1])?.efforts : nil
            let values = (0..<20).map { _ in
                "\(option.rawValue):"
                    + (range.map { "\(Int.random(in: $0, using: &random))" } ?? value(of: option.parameter))
            }
            guard let value = values.first(where: { parts.canTell(option, parts.loose[place], $0) }) else { continue }
            add { $0.loose[place] = value }
        }
        return others
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &random)]
    }

    private mutating func value(of parameter: Parameter) -> String {
        switch parameter.kind {
        case .flag: pick(["yes", "no"])
        case .whole(let range): "\(Int.random(in: range, using: &random))"
        case .number(let range):
            "\(Double(Int.random(in: Int((range.lowerBound * 10).rounded(.up))...Int(range.upperBound * 10), using: &random)) / 10)"
        case .word(let words), .words(let words): pick(words)
        case .colour: pick(["#102030", "#10203040", "white", "transparent", "#fed"])
        case .opaqueColour: pick(["#102030", "#405060", "white", "black", "#fed"])
        case .text, .name, .argument: pick(["logo.png", "mark_2"])
        }
    }
}
