/// What may stand in a variant, for help texts: made from the same tables that variants are read by.
public enum VariantReference {
    /// Each effect as it is written, what is optional in brackets: `blur:SIGMA`.
    public static var effects: [String] { EffectKind.allCases.map { Effect.usage(of: $0) } }

    public static var options: [String] { VariantOption.allCases.map(\.rawValue) }

    public static var positions: [String] { Position.words.dropLast() + ["focus:X:Y"] }

    public static var formats: [String] { VariantSpec.Output.allCases.map(\.rawValue) }
}
