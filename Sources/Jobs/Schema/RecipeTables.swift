/// Recipes: variants by name. An INSERT replaces their names by their variants, so a job keeps the variants that it was
/// enqueued with.
extension Schema {
    static let recipeTables = """
        CREATE TABLE recipes (
            name TEXT PRIMARY KEY NOT NULL
                CONSTRAINT "the name of a recipe has 1 to 100 letters, digits, dots, hyphens and underscores"
                CHECK (typeof(name) = 'text' AND length(name) BETWEEN 1 AND 100 AND name NOT GLOB '*[^A-Za-z0-9._-]*'),
            variants TEXT NOT NULL
                CONSTRAINT "the variants of a recipe are written in short, as in 'thumb=320x240,webp card=640x,webp', and name no recipe"
                CHECK (typeof(variants) = 'text' AND length(variants) BETWEEN 1 AND 65536
                    AND \(beginsWithNoJSON("variants")) AND instr(\(spaced("variants")), ' recipe:') = 0)
        ) WITHOUT ROWID;

        """ + ["jobs", "items"].map(expansion).joined(separator: "\n")

    private static func expansion(_ table: String) -> String {
        """
        CREATE TRIGGER \(table)_expand_recipes AFTER INSERT ON \(table) WHEN \(namesRecipe) BEGIN
            UPDATE \(table) SET variants = NEW.variants WHERE id = NEW.id;
        END;
        CREATE TRIGGER \(table)_expand_recipes_update AFTER UPDATE OF variants ON \(table) WHEN \(namesRecipe) BEGIN
            SELECT RAISE(ABORT, 'variants names a recipe that does not exist; SELECT name FROM recipes lists those that do')
                WHERE EXISTS (SELECT 1 FROM \(words) WHERE value GLOB 'recipe:*'
                    AND substr(value, 8) NOT IN (SELECT name FROM recipes));
            UPDATE \(table) SET variants = (SELECT group_concat(part, ' ')
                FROM (SELECT coalesce(recipes.variants, word.value) AS part FROM \(words) AS word
                    LEFT JOIN recipes ON word.value = 'recipe:' || recipes.name WHERE word.value <> ''
                    ORDER BY word.key) AS parts)
                WHERE id = NEW.id;
        END;
        """
    }

    /// The first check is cheap, and suffices for most variants, which have no such text.
    private static let namesRecipe = """
        instr(NEW.variants, 'recipe:') > 0 AND instr(\(spaced("NEW.variants")), ' recipe:') > 0
            AND \(beginsWithNoJSON("NEW.variants"))
        """

    /// The variants' words, as a table with the column `value`.
    private static let words = """
        json_each('[' || replace(json_quote(\(spaced("NEW.variants"))), ' ', '","') || ']')
        """

    /// A list of variants with a space before each and after the last, in place of all other separators.
    private static func spaced(_ column: String) -> String {
        "(' ' || " + ["char(9)", "char(10)", "char(13)", "';'"].reduce(column) { "replace(\($0), \($1), ' ')" }
            + " || ' ')"
    }

    private static func beginsWithNoJSON(_ column: String) -> String {
        "substr(ltrim(\(column), ' ' || char(9) || char(10) || char(13)), 1, 1) NOT IN ('{', '[')"
    }
}
