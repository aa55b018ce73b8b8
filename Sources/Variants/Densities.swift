/// The densities of screens for which a variant gets a rendition each, as in `@1+@2+@3`.
struct Densities: Equatable {
    /// Each once, in the order they were written.
    let factors: [Int]

    private static let possible = 1...9

    /// - Returns: nil where the part is something else.
    init?(short part: String) throws(VariantSpecError) {
        guard part.first == "@" else { return nil }
        var factors: [Int] = []
        for word in part.split(separator: "+", omittingEmptySubsequences: false) {
            guard word.first == "@", word.utf8.count == 2, let factor = word.last?.wholeNumberValue else {
                throw Self.wrong("'\(VariantSpecError.quoted(part))'")
            }
            factors.append(factor)
        }
        try self.init(factors, shown: "'\(part)'")
    }

    init(json: JSONValue) throws(VariantSpecError) {
        guard case .array(let elements) = json else { throw Self.wrong("'densities': \(json.kind)") }
        var factors: [Int] = []
        for element in elements {
            guard case .integer(let factor) = element else { throw Self.wrong("'densities': \(element.kind)") }
            factors.append(factor)
        }
        try self.init(factors, shown: "'densities'")
    }

    private init(_ factors: [Int], shown: String) throws(VariantSpecError) {
        guard !factors.isEmpty, Set(factors).count == factors.count, factors.allSatisfy(Self.possible.contains) else {
            throw Self.wrong(shown)
        }
        self.factors = factors
    }

    private static func wrong(_ shown: String) -> VariantSpecError {
        VariantSpecError(
            "\(shown): densities are whole numbers between \(possible.lowerBound) and \(possible.upperBound), each once; "
                + "write @1+@2+@3, or [1,2,3] in JSON")
    }
}

extension VariantSpec {
    /// A spec for each density: itself for 1, `NAME@2x` with twice the width and height for 2.
    func at(_ densities: Densities?) throws(VariantSpecError) -> [VariantSpec] {
        guard let densities else { return [self] }
        guard width != nil || height != nil else {
            throw VariantSpecError("variant '\(name)' has densities, and neither a width nor a height to multiply")
        }
        var specs: [VariantSpec] = []
        for factor in densities.factors { specs.append(factor == 1 ? self : try multiplied(by: factor)) }
        return specs
    }

    private func multiplied(by factor: Int) throws(VariantSpecError) -> VariantSpec {
        var spec = VariantSpec(unchecked: "\(name)@\(factor)x")
        // Sides are at most 65,535, so the products do not overflow.
        (spec.width, spec.height) = (width.map { $0 * factor }, height.map { $0 * factor })
        (spec.fit, spec.enlarge, spec.position) = (fit, enlarge, position)
        (spec.format, spec.quality, spec.options) = (format, quality, options)
        // Effects before the box are measured in the source's pixels.
        var isBoxed = false
        for effect in effectsInOrder {
            isBoxed = isBoxed || effect.kind == .resize
            spec.effects.append(isBoxed ? try effect.multiplied(by: factor) : effect)
        }
        return try spec.checked()
    }
}

extension Effect {
    /// The same effect for a picture with this many times the pixels in each direction.
    fileprivate func multiplied(by factor: Int) throws(VariantSpecError) -> Effect {
        var effect = self
        for parameter in kind.parameters where kind.lengths.contains(parameter.name) {
            let product = number(parameter.name) * Double(factor)
            // A whole number is written without a decimal point, in messages too.
            let length = product == product.rounded() ? JSONValue.integer(Int(product)) : .number(product)
            effect = effect.with(parameter.name, to: try parameter.read(length, of: kind.rawValue))
        }
        return effect
    }
}
