internal import Core

/// Variants under a name, which jobs ask for as `recipe:NAME` among their variants.
public struct Recipe: Hashable, Sendable, Codable {
    public let name: String
    /// In the short form.
    public let variants: String

    public init(name: String, variants: String) {
        self.name = name
        self.variants = variants
    }

    /// How a list of variants names a recipe.
    static let mark = "recipe:"

    /// Splits a list of variants into the variants without recipes and the names of its recipes. A list in JSON names
    /// no recipes.
    public static func split(_ variants: String?) -> (variants: String?, recipes: [String]) {
        guard let variants, variants.contains(mark), let first = variants.first(where: { !$0.isWhitespace }),
            first != "{", first != "["
        else { return (variants, []) }
        let words = variants.split { $0.isWhitespace || $0 == ";" }
        let own = words.filter { !$0.hasPrefix(mark) }
        return (
            own.isEmpty ? nil : own.joined(separator: " "),
            words.filter { $0.hasPrefix(mark) }.map { String($0.dropFirst(mark.count)) }
        )
    }
}

/// The recipes. A job keeps the variants that its recipes had when it was enqueued.
public struct RecipeBook: Sendable {
    let gate: DatabaseGate

    /// Adds a recipe, or replaces the recipe of this name.
    ///
    /// - Returns: whether it is new.
    /// - Throws: `refused` if its name or its variants can't be those of a recipe.
    public func put(_ recipe: Recipe) async throws(JobsError) -> Bool {
        try await gate.write { db in
            let isNew = try !db.exists("SELECT 1 FROM recipes WHERE name = ?", [recipe.name])
            try db.run(
                """
                INSERT INTO recipes (name, variants) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET variants = ?2
                """, [recipe.name, recipe.variants])
            return isNew
        }
    }

    public func all() async throws(JobsError) -> [Recipe] {
        try await gate.read { db in
            try db.rows("SELECT name, variants FROM recipes ORDER BY name", []).map {
                Recipe(name: $0["name"], variants: $0["variants"])
            }
        }
    }

    /// - Returns: whether there was one of this name.
    public func remove(_ name: String) async throws(JobsError) -> Bool {
        try await gate.write { db in try db.change("DELETE FROM recipes WHERE name = ?", [name]) > 0 }
    }

    /// Names the recipe that does not exist, which the trigger can't.
    static func check(_ variants: String?, in db: Connection) throws {
        for name in Recipe.split(variants).recipes where try !db.exists("SELECT 1 FROM recipes WHERE name = ?", [name])
        {
            let known = try db.texts("SELECT name FROM recipes ORDER BY name", [])
            throw JobsError(
                .refused,
                "There is no recipe '\(name.prefix(64))'.\(NearestWord.question(name, among: known)) "
                    + (known.isEmpty
                    ? "Make one with: worker recipe add NAME VARIANT…"
                    : "The recipes are: \(known.joined(separator: ", ")).").prefix(500))
        }
    }
}
