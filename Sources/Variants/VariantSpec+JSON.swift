internal import Core
import FoundationEssentials

// The long form: {"name":"thumb","width":320,"height":240,"fit":"cover","enlarge":true,"format":"webp","quality":80}.

extension VariantSpec {
    /// - Parameter text: the value of `jobs.variants`: empty; short forms between white space or `;`; a JSON object; or
    ///   a JSON array of objects and short forms. At most 64, each name once.
    public static func parseList(_ text: String?) throws(VariantSpecError) -> [VariantSpec] {
        guard let text, let first = text.first(where: { !$0.isWhitespace }) else { return [] }
        let specs = first == "{" || first == "[" ? try parseJSON(text) : try parseShortForms(text)
        try validate(list: specs)
        return specs
    }

    private static func validate(list specs: [VariantSpec]) throws(VariantSpecError) {
        guard specs.count <= maxVariants else {
            throw VariantSpecError("there are \(specs.count) variants; \(maxVariants) is the maximum")
        }
        var seen: Set<String> = []
        for spec in specs where !seen.insert(spec.name).inserted {
            throw VariantSpecError("there are two variants of the name '\(spec.name)'; give each its own")
        }
    }

    private static func parseShortForms(_ text: String) throws(VariantSpecError) -> [VariantSpec] {
        var specs: [VariantSpec] = []
        for part in text.split(whereSeparator: { $0.isWhitespace || $0 == ";" }) {
            specs += try parseShort(String(part))
        }
        return specs
    }

    private static func parseJSON(_ text: String) throws(VariantSpecError) -> [VariantSpec] {
        let value: JSONValue
        do {
            value = try JSONDecoder().decode(JSONValue.self, from: Data(text.utf8))
        } catch {
            throw VariantSpecError(
                "the variants begin like JSON and are not: \(VariantSpecError.quoted(text)); write an object, an array "
                    + "of objects, or the short form NAME=320x240")
        }
        // The decoder would pick one of the two, and the user may have meant the other.
        if let key = RepeatedKey.first(in: text) {
            throw VariantSpecError("the key '\(VariantSpecError.quoted(key))' is there twice; leave one of them out")
        }
        guard case .array(let elements) = value else { return try parse(json: value, at: nil) }
        var specs: [VariantSpec] = []
        for (index, element) in elements.enumerated() { specs += try parse(json: element, at: index) }
        return specs
    }

    private static func parse(json: JSONValue, at index: Int?) throws(VariantSpecError) -> [VariantSpec] {
        do throws(VariantSpecError) {
            switch json {
            case .object(let members):
                let densities = try members["densities"].flatMap { (value) throws(VariantSpecError) -> Densities? in
                    if case .null = value { nil } else { try Densities(json: value) }
                }
                return try VariantSpec(members: members).at(densities)
            case .string(let short): return try parseShort(short)
            default: throw VariantSpecError("a variant must be an object or a short form, not \(json.kind)")
            }
        } catch {
            throw VariantSpecError(index.map { "variant \($0 + 1) of the array: \(error)" } ?? error.description)
        }
    }

    private static let keys =
        ["name", "width", "height", "fit", "position", "enlarge", "format", "quality", "ops", "densities"]
        + VariantOption.allCases.map(\.rawValue)

    private init(members: [String: JSONValue]) throws(VariantSpecError) {
        for key in members.keys.sorted() where !Self.keys.contains(key) {
            let hint =
                NearestWord.find(key, among: Self.keys).map { "did you mean '\($0)'?" }
                ?? "the keys are \(Self.keys.joined(separator: ", "))"
            throw VariantSpecError("unknown key '\(VariantSpecError.quoted(key))'; \(hint)")
        }
        guard let name = try members.string("name") else {
            throw VariantSpecError("there is no 'name'; every variant needs one")
        }
        var spec = VariantSpec(unchecked: name)
        spec.width = try members.integer("width", in: 1...65_535)
        spec.height = try members.integer("height", in: 1...65_535)
        spec.fit = try members.word("fit", among: Fit.allCases.map(\.rawValue), Fit.init) ?? .inside
        spec.enlarge = try members.flag("enlarge") ?? false
        if !members.isAuto {
            spec.format = try members.word("format", among: Output.allCases.map(\.rawValue), Output.init(word:))
        }
        spec.quality = try members.integer("quality", in: 1...100)
        spec.position = try Self.position(members["position"])
        spec.effects = try Self.effects(members["ops"])
        spec.options = try Self.options(members)
        self = try spec.checked()
    }

    private static func position(_ value: JSONValue?) throws(VariantSpecError) -> Position {
        switch value {
        case nil, .null?: .centre
        case .some(let value): try Position(json: value)
        }
    }

    private static func effects(_ ops: JSONValue?) throws(VariantSpecError) -> [Effect] {
        switch ops {
        case nil, .null?: return []
        case .array(let elements)?:
            var effects: [Effect] = []
            for element in elements { effects.append(try Effect(json: element)) }
            return effects
        case .some(let other): throw VariantSpecError("'ops' must be an array, not \(other.kind)")
        }
    }

    private static func options(_ members: [String: JSONValue]) throws(VariantSpecError) -> VariantOptions {
        var options = VariantOptions()
        if members.isAuto, let usual = VariantOption.auto.alone { options.set(.auto, usual) }
        for option in VariantOption.allCases {
            switch members[option.rawValue] {
            case nil, .null?: continue
            case .some(let value):
                if case .bool(true) = value, let alone = option.alone {
                    options.set(option, alone)
                } else {
                    options.set(option, try option.parameter.read(value, of: option.rawValue))
                }
            }
        }
        return options
    }
}

extension [String: JSONValue] {
    /// Whether it has `"format": "auto"`, which equals `"auto": true`.
    fileprivate var isAuto: Bool {
        if case .string("auto")? = self["format"] { true } else { false }
    }
}

extension VariantSpec: Codable {
    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(_ text: String) { stringValue = text }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    /// Uses the rules of ``parseList(_:)``, so a decoder cannot produce an invalid spec.
    public init(from decoder: any Decoder) throws {
        let value = try JSONValue(from: decoder)
        do throws(VariantSpecError) {
            self = try Self.only(Self.parse(json: value, at: nil), of: "the object")
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: error.description, underlyingError: error))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(name, forKey: Key("name"))
        try container.encodeIfPresent(width, forKey: Key("width"))
        try container.encodeIfPresent(height, forKey: Key("height"))
        try container.encode(fit, forKey: Key("fit"))
        try container.encode(enlarge, forKey: Key("enlarge"))
        try container.encodeIfPresent(format, forKey: Key("format"))
        try container.encodeIfPresent(quality, forKey: Key("quality"))
        if case .focus(let x, let y) = position {
            try container.encode(["x": x, "y": y], forKey: Key("position"))
        } else {
            try container.encode(position.canonical, forKey: Key("position"))
        }
        if !effects.isEmpty { try container.encode(effects, forKey: Key("ops")) }
        for (option, value) in options.given { try container.encode(value, forKey: Key(option.rawValue)) }
    }
}
