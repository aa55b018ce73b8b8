/// Checks the columns that a user may set for a single item.
extension ItemSchema {
    /// More fallbacks, or a longer `meta`, are refused as a mistake.
    static let maxFallbacks = 16
    static let longestMeta = 16_384

    private static let columns = ["meta", "priority", "variants", "headers", "sha256", "size", "fallbacks"]

    private static let rules = [
        Schema.refuse(
            "meta must be a JSON object of at most 16 KiB, as in json_object('sku', 7)",
            when: Schema.isNoJSON("meta", type: "object", orElse: "length(CAST(NEW.meta AS BLOB)) > \(longestMeta)")),
        Schema.refuse(
            "the priority of an item must be a whole number from -100 to 100 (or NULL for its job's)",
            when:
                "NEW.priority IS NOT NULL AND (typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN -100 AND 100)"
        ),
        Schema.refuse(
            "variants must be text, as in 'thumb=320x240,cover,webp,q80'",
            when: "NEW.variants IS NOT NULL AND typeof(NEW.variants) <> 'text'"),
        Schema.headersCheck,
        Schema.refuse(
            "sha256 must be 64 hexadecimal digits",
            when: """
                NEW.sha256 IS NOT NULL AND (typeof(NEW.sha256) <> 'text' OR length(NEW.sha256) <> 64
                    OR NEW.sha256 GLOB '*[^0-9a-fA-F]*')
                """),
        Schema.refuse(
            "size must be a whole number of bytes, 0 or more",
            when: "NEW.size IS NOT NULL AND (typeof(NEW.size) <> 'integer' OR NEW.size < 0)"),
        Schema.refuse(
            "fallbacks must be a JSON array of at most 16 strings, as in json_array('https://example.com/b.jpg')",
            when: Schema.isNoJSON(
                "fallbacks", type: "array",
                orElse: """
                    json_array_length(NEW.fallbacks) > \(maxFallbacks) OR \(Schema.elementsAreNoText("fallbacks"))
                    """)),
    ].joined(separator: "\n")

    static let checks = """
        CREATE TRIGGER items_check_own BEFORE INSERT ON items
        WHEN \(columns.map { "NEW.\($0) IS NOT NULL" }.joined(separator: " OR ")) BEGIN
            \(rules)
        END;
        CREATE TRIGGER items_check_own_update BEFORE UPDATE OF \(columns.joined(separator: ", ")) ON items BEGIN
            \(rules)
        END;
        """

    /// An SQL expression for the URL to request now: a fallback, if the URLs before it have failed.
    static func askedURL(_ items: String) -> String {
        """
        CASE WHEN coalesce(\(items).fallback, 0) < 1 THEN \(items).url WHEN json_valid(\(items).fallbacks)
            THEN coalesce(json_extract(\(items).fallbacks, '$[' || (\(items).fallback - 1) || ']'), \(items).url)
            ELSE \(items).url END
        """
    }
}
