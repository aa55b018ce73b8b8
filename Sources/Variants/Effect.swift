internal import Core
internal import FoundationEssentials

/// One effect with all its parameters; parameters that were left out have their defaults.
///
/// In short `blur:2`, `rotate:30:clip`, or with names `rotate:30:background=white`; in JSON `{"blur":{"sigma":2}}`,
/// `{"blur":2}`, `"greyscale"`.
public struct Effect: Hashable, Sendable {
    public private(set) var kind: EffectKind
    /// One for each parameter of the kind, in its order.
    package private(set) var arguments: [ParameterValue]

    /// Equal for two effects exactly if they have the same result.
    var canonical: String {
        let values = zip(kind.parameters, arguments).map { "\($0.name)=\($1.canonical)" }
        return kind.rawValue + "(" + values.joined(separator: ":") + ")"
    }

    private init(_ kind: EffectKind, given: [String: ParameterValue]) throws(VariantSpecError) {
        self.kind = kind
        var arguments: [ParameterValue] = []
        for parameter in kind.parameters {
            guard let argument = given[parameter.name] ?? parameter.fallback else {
                throw VariantSpecError(
                    "'\(kind.rawValue)' needs its '\(parameter.name)'; write \(Self.usage(of: kind))")
            }
            arguments.append(argument)
        }
        self.arguments = arguments
        self = normalForm
    }

    /// The box's place among the effects.
    static let resize = Effect(.resize, [])

    /// The effect that equals flipping both ways.
    static let halfTurn = Effect(.rotate, [.number(180), .word("grow"), .colour(.transparent)])

    private init(_ kind: EffectKind, _ arguments: [ParameterValue]) {
        self.kind = kind
        self.arguments = arguments
    }

    /// The same with another value of one parameter.
    func with(_ name: String, to value: ParameterValue) -> Effect {
        Effect(kind, zip(kind.parameters, arguments).map { $0.name == name ? value : $1 })
    }

    /// The short form with every parameter's name in its place.
    static func usage(of kind: EffectKind) -> String {
        kind.parameters.reduce(into: kind.rawValue) { usage, parameter in
            usage += parameter.fallback == nil ? ":\(parameter.name.uppercased())" : "[:\(parameter.name)]"
        }
    }
}

// MARK: - Short form and JSON

extension Effect {
    /// - Parameter part: `NAME[:VALUE]…`, each value in its place or as `PARAMETER=VALUE`.
    /// - Returns: nil where the name is no effect's.
    init?(short part: String) throws(VariantSpecError) {
        let words = part.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard let kind = EffectKind(rawValue: words[0]) else { return nil }
        if kind == .watermark, words.dropFirst().contains(where: { $0.hasPrefix("//") }) {
            throw VariantSpecError(
                "'\(VariantSpecError.quoted(part))': a URL has colons, which divide values here; write the variant as "
                    + #"JSON, with {"watermark":{"image":"https://…"}} among its "ops""#)
        }
        var given: [String: ParameterValue] = [:]
        for (place, word) in words.dropFirst().enumerated() {
            let (parameter, text) = try Self.parameter(of: kind, place, word)
            // An empty value means that the parameter is left out, so it gets its default.
            if word.isEmpty, parameter.fallback != nil { continue }
            guard given[parameter.name] == nil else {
                throw VariantSpecError("'\(part)' gives '\(parameter.name)' a second time; leave one of them out")
            }
            given[parameter.name] = try parameter.read(text, of: kind.rawValue)
        }
        try self.init(kind, given: given)
    }

    private static func parameter(
        of kind: EffectKind, _ place: Int, _ word: String,
    ) throws(VariantSpecError) -> (Parameter, String) {
        let halves = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        if halves.count == 2, let named = kind.parameters.first(where: { $0.name == halves[0] }) {
            return (named, String(halves[1]))
        }
        if halves.count == 2, !takesAnyText(kind, place) {
            throw noParameter(String(halves[0]), of: kind)
        }
        guard place < kind.parameters.count else {
            throw VariantSpecError("'\(kind.rawValue)' has one value too many; write \(usage(of: kind))")
        }
        return (kind.parameters[place], word)
    }

    /// Whether the value at a place is a text, which may have '='.
    private static func takesAnyText(_ kind: EffectKind, _ place: Int) -> Bool {
        guard place < kind.parameters.count else { return false }
        switch kind.parameters[place].kind {
        case .text, .argument: return true
        default: return false
        }
    }

    private static func noParameter(_ name: String, of kind: EffectKind) -> VariantSpecError {
        let names = kind.parameters.map(\.name)
        let hint =
            NearestWord.find(name, among: names).map { "did you mean '\($0)'?" }
            ?? (names.isEmpty ? "it has none" : "it has \(names.joined(separator: ", "))")
        return VariantSpecError("'\(kind.rawValue)' has no parameter '\(VariantSpecError.quoted(name))'; \(hint)")
    }

    init(json: JSONValue) throws(VariantSpecError) {
        switch json {
        case .string(let name): try self.init(name: name, value: .null)
        case .object(let members):
            guard members.count == 1, let member = members.first else {
                throw VariantSpecError(#"an effect must be an object of one member, as in {"blur":{"sigma":2}}"#)
            }
            try self.init(name: member.key, value: member.value)
        default: throw VariantSpecError("an effect must be an object or a name, not \(json.kind)")
        }
    }

    private init(name: String, value: JSONValue) throws(VariantSpecError) {
        guard let kind = EffectKind(rawValue: name) else { throw Self.unknown(name) }
        switch value {
        case .null, .bool(true): try self.init(kind, given: [:])
        case .object(let members): try self.init(kind, given: Self.read(members, of: kind))
        default:
            guard let only = kind.parameters.first else {
                throw VariantSpecError("'\(name)' has no parameters; write \"\(name)\"")
            }
            try self.init(kind, given: [only.name: only.read(value, of: name)])
        }
    }

    private static func read(
        _ members: [String: JSONValue], of kind: EffectKind,
    ) throws(VariantSpecError) -> [String: ParameterValue] {
        var given: [String: ParameterValue] = [:]
        for (key, value) in members.sorted(by: { $0.key < $1.key }) {
            guard let parameter = kind.parameters.first(where: { $0.name == key }) else {
                throw noParameter(key, of: kind)
            }
            if case .null = value { continue }
            given[key] = try parameter.read(value, of: kind.rawValue)
        }
        return given
    }

    static func unknown(_ name: String) -> VariantSpecError {
        let names = EffectKind.allCases.map(\.rawValue)
        let hint =
            NearestWord.find(name, among: names).map { "did you mean \($0)?" }
            ?? "the effects are \(names.joined(separator: ", "))"
        return VariantSpecError("unknown effect '\(VariantSpecError.quoted(name))'; \(hint)")
    }
}

extension Effect: Encodable {
    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Name.self)
        let values = Dictionary(uniqueKeysWithValues: zip(kind.parameters.map(\.name), arguments))
        try container.encode(values, forKey: Name(stringValue: kind.rawValue))
    }
}

// MARK: - Reading the arguments

extension Effect {
    /// The argument of that name. A name that is not in the kind's table is a bug, and reads as `flag(false)`.
    private func argument(_ name: String) -> ParameterValue {
        let index = kind.parameters.firstIndex { $0.name == name }
        assert(index != nil, "\(kind) has no parameter \(name)")
        return index.map { arguments[$0] } ?? .flag(false)
    }

    package func number(_ name: String) -> Double {
        if case .number(let value) = argument(name) { value } else { 0 }
    }

    package func whole(_ name: String) -> Int { Int(number(name)) }

    package func word(_ name: String) -> String {
        switch argument(name) {
        case .word(let value), .text(let value): value
        default: ""
        }
    }

    package func words(_ name: String) -> [String] {
        if case .words(let values) = argument(name) { values } else { [] }
    }

    package func colour(_ name: String) -> Colour {
        if case .colour(let value) = argument(name) { value } else { .transparent }
    }
}

// Spellings with the same result become one: a parameter that has no effect beside the others gets its default.

extension Effect {
    /// The same effect, with the default for each parameter that has no effect here.
    var normalForm: Effect {
        switch kind {
        case .rotate: normalRotation
        case .flip where word("direction") == "both": .halfTurn
        case .round:
            with("colour", to: .colour(number("border") == 0 ? .black : colour("colour").visible))
                .with("corners", to: .words(number("radius") == 0 ? EffectKind.corners : words("corners")))
        case .pad: with("colour", to: .colour(colour("colour").visible))
        default: self
        }
    }

    private var normalRotation: Effect {
        let angle = number("angle").truncatingRemainder(dividingBy: 360)
        let upright = with("angle", to: .number(angle < 0 ? angle + 360 : angle))
            .with("background", to: .colour(colour("background").visible))
        guard angle.truncatingRemainder(dividingBy: 90) == 0 else { return upright }
        let keepsCanvas = angle.truncatingRemainder(dividingBy: 180) == 0
        guard keepsCanvas || word("canvas") == "grow" else { return upright }
        return upright.with("canvas", to: .word("grow")).with("background", to: .colour(.transparent))
    }

    /// Whether it leaves every picture as it is.
    var isNeutral: Bool {
        switch kind {
        case .rotate: number("angle") == 0
        case .brightness, .contrast, .saturation: number("factor") == 1
        case .gamma: number("exponent") == 1
        case .pad: ["top", "right", "bottom", "left"].allSatisfy { whole($0) == 0 }
        case .round: number("radius") == 0 && number("border") == 0
        case .sharpen: number("amount") == 0
        case .tint: colour("colour").alpha == 0
        case .watermark: number("opacity") == 0
        default: false
        }
    }
}

extension Colour {
    /// All fully transparent colours are equal.
    fileprivate var visible: Colour { alpha == 0 ? .transparent : self }
}
