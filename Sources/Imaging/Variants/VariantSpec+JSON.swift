import FoundationEssentials

// The long form: {"name":"thumb","width":320,"height":240,"fit":"cover","enlarge":true,"format":"webp","quality":80}.

extension VariantSpec {
    /// - Parameter text: what stands in `jobs.variants`: nothing; short forms between white space or `;`; a JSON
    ///   object; or a JSON array of objects and short forms. At most 64, each name once.
    public static func parseList(_ text: String?) throws(VariantSpecError) -> [VariantSpec] {
        guard let text, let first = text.first(where: { !$0.isWhitespace }) else { return [] }
        let specs = first == "{" || first == "[" ? try parseJSON(text) : try parseShortForms(text)
        try validate(list: specs)
        return specs
    }

    private static func validate(list specs: [VariantSpec]) throws(VariantSpecError) {
        guard specs.count <= mostInAList else {
            throw VariantSpecError("there are \(specs.count) variants; \(mostInAList) are the most a job may ask for")
        }
        var seen: Set<String> = []
        for spec in specs where !seen.insert(spec.name).inserted {
            throw VariantSpecError("there are two variants of the name '\(spec.name)'; give each its own")
        }
    }

    private static func parseShortForms(_ text: String) throws(VariantSpecError) -> [VariantSpec] {
        var specs: [VariantSpec] = []
        for part in text.split(whereSeparator: { $0.isWhitespace || $0 == ";" }) {
            specs.append(try parse(String(part)))
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
        guard case .array(let elements) = value else { return [try parse(json: value, at: nil)] }
        var specs: [VariantSpec] = []
        for (index, element) in elements.enumerated() { specs.append(try parse(json: element, at: index)) }
        return specs
    }

    private static func parse(json: JSONValue, at index: Int?) throws(VariantSpecError) -> VariantSpec {
        do throws(VariantSpecError) {
            switch json {
            case .object(let members): return try VariantSpec(members: members)
            case .string(let short): return try parse(short)
            default: throw VariantSpecError("a variant must be an object or a short form, not \(json.kind)")
            }
        } catch {
            throw VariantSpecError(index.map { "variant \($0 + 1) of the array: \(error)" } ?? error.description)
        }
    }

    private static let keys = ["name", "width", "height", "fit", "enlarge", "format", "quality", "ops"]

    private init(members: [String: JSONValue]) throws(VariantSpecError) {
        for key in members.keys.sorted() where !Self.keys.contains(key) {
            let hint =
                Suggestion.nearest(to: key, among: Self.keys).map { "did you mean '\($0)'?" }
                ?? "the keys are \(Self.keys.joined(separator: ", "))"
            throw VariantSpecError("unknown key '\(VariantSpecError.quoted(key))'; \(hint)")
        }
        guard let name = try members.string("name") else {
            throw VariantSpecError("there is no 'name'; every variant needs one")
        }
        try Self.refuseEffects(members["ops"])
        try self.init(
            name: name,
            width: members.integer("width"),
            height: members.integer("height"),
            fit: members.word("fit", among: Fit.allCases.map(\.rawValue), Fit.init) ?? .inside,
            enlarge: members.flag("enlarge") ?? false,
            format: members.word("format", among: Output.allCases.map(\.rawValue), Output.init(word:)),
            quality: members.integer("quality"),
        )
    }

    private static func refuseEffects(_ ops: JSONValue?) throws(VariantSpecError) {
        switch ops {
        case nil, .null?: return
        case .array(let effects)? where effects.isEmpty: return
        case .array?: throw VariantSpecError("effects are not supported by this version; leave 'ops' empty")
        case .some(let other): throw VariantSpecError("'ops' must be an array, not \(other.kind)")
        }
    }
}

extension VariantSpec: Codable {
    private enum CodingKeys: String, CodingKey { case name, width, height, fit, enlarge, format, quality }

    /// Read by the same rules as ``parseList(_:)`` has, so no invalid spec can come in through a decoder.
    public init(from decoder: any Decoder) throws {
        let value = try JSONValue(from: decoder)
        do throws(VariantSpecError) {
            self = try Self.parse(json: value, at: nil)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: error.description, underlyingError: error))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encodeIfPresent(width, forKey: .width)
        try container.encodeIfPresent(height, forKey: .height)
        try container.encode(fit, forKey: .fit)
        try container.encode(enlarge, forKey: .enlarge)
        try container.encodeIfPresent(format, forKey: .format)
        try container.encodeIfPresent(quality, forKey: .quality)
    }
}
