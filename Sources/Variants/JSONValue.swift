internal import Core

/// Undecoded JSON, so that our own messages can name unknown keys and wrong types.
enum JSONValue: Decodable {
    case null
    case bool(Bool)
    case integer(Int)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        // Best effort: each `try?` tests whether the value has that type; the last `try` throws if none fits.
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Int.self) {
            self = .integer(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    /// The type with its article, for messages.
    var kind: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// Members of a variant's object. A missing one and `null` mean the same.
extension [String: JSONValue] {
    func string(_ key: String) throws(VariantSpecError) -> String? {
        switch self[key] {
        case nil, .null?: nil
        case .string(let value)?: value
        case .some(let other): throw Self.wrong(key, "a string", other)
        }
    }

    /// - Parameter range: for the message alone.
    func integer(_ key: String, in range: ClosedRange<Int>) throws(VariantSpecError) -> Int? {
        switch self[key] {
        case nil, .null?: nil
        case .integer(let value)?: value
        case .some(let other):
            throw Self.wrong(key, "a whole number between \(range.lowerBound) and \(range.upperBound)", other)
        }
    }

    package func flag(_ key: String) throws(VariantSpecError) -> Bool? {
        switch self[key] {
        case nil, .null?: nil
        case .bool(let value)?: value
        case .some(let other): throw Self.wrong(key, "true or false", other)
        }
    }

    package func word<Word>(
        _ key: String, among words: [String], _ make: (String) -> Word?,
    ) throws(VariantSpecError) -> Word? {
        guard let text = try string(key) else { return nil }
        if let value = make(text) { return value }
        let hint =
            NearestWord.find(text, among: words).map { "did you mean \($0)?" }
            ?? "it is one of \(words.joined(separator: ", "))"
        throw VariantSpecError("'\(VariantSpecError.quoted(text))' is no \(key); \(hint)")
    }

    private static func wrong(_ key: String, _ wanted: String, _ found: JSONValue) -> VariantSpecError {
        VariantSpecError("'\(key)' must be \(wanted), not \(found.kind)")
    }
}
