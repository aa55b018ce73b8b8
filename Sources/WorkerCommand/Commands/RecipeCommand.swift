import ArgumentParser
import Core
import Jobs
import PrefetchWorker
import Variants

struct RecipeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recipe",
        abstract: "Keeps variants under names, which jobs ask for as recipe:NAME.",
        discussion: """
            EXAMPLES:
              worker recipe add shop thumb=320x240,cover,webp card=640x,webp
              worker enqueue -f urls.txt --variant recipe:shop
              worker recipe list
            """,
        subcommands: [List.self, Add.self, Remove.self],
    )

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add",
            abstract: "Adds a recipe, or replaces the recipe of this name.",
            discussion: """
                Commands, manifests and SQL name a recipe among variants: recipe:shop. A job keeps the variants that the recipe \
                had when the job was enqueued; enqueue again to apply a changed recipe.

                EXAMPLES:
                  worker recipe add shop thumb=160x160,contain,webp card=320x320,contain,webp
                  worker enqueue -f urls.txt --variant recipe:shop
                  sqlite3 worker.db "INSERT INTO recipes VALUES ('avatar', 'small=64x64,cover,webp')"
                """,
        )
        @OptionGroup var common: CommonOptions
        @Argument(help: "Letters, digits, dots, hyphens and underscores.") var name: String
        @Argument(help: "Variants, as 'worker enqueue --variant' takes them.") var variants: [String]

        func run() async throws {
            try await reportingErrors {
                let text = variants.joined(separator: " ")
                guard Recipe.split(text).recipes.isEmpty else {
                    throw SettingsError("A recipe names no other recipe: write its variants.")
                }
                do {
                    guard try !VariantSpec.parseList(text).isEmpty else {
                        throw SettingsError("A recipe needs a variant, such as thumb=320x240,cover,webp.")
                    }
                } catch let error as VariantSpecError {
                    throw SettingsError("\(error)")
                }
                let recipe = Recipe(name: name, variants: text)
                let isNew = try await common.withStore { store in try await store.recipes.put(recipe) }
                Terminal.print("\(isNew ? "added" : "replaced") \(Terminal.safe(name))")
            }
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Lists the recipes with their variants.",
            discussion: """
                EXAMPLES:
                  worker recipe list
                  worker recipe list --json
                """,
        )
        @OptionGroup var common: CommonOptions
        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            try await reportingErrors {
                let recipes = try await common.readingStore { store in try await store.recipes.all() }
                if json { return Terminal.print(try Output.json(recipes)) }
                guard !recipes.isEmpty else {
                    return Terminal.print("No recipes. Add one with: worker recipe add NAME VARIANT…")
                }
                let rows = recipes.map { [Terminal.safe($0.name), Terminal.safe($0.variants)] }
                Output.table(["name", "variants"], rows).forEach(Terminal.print)
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Removes a recipe; jobs that were enqueued with it keep their variants.",
            discussion: """
                EXAMPLES:
                  worker recipe remove shop
                """,
        )
        @OptionGroup var common: CommonOptions
        @Argument(help: "The recipe's name.") var name: String

        func run() async throws {
            try await reportingErrors {
                try await common.withStore { store in
                    guard try await store.recipes.remove(name) else {
                        let known = try await store.recipes.all().map(\.name)
                        let name = Terminal.safe(String(name.prefix(64)))
                        Terminal.error(
                            "worker: There is no recipe '\(name)'.\(NearestWord.question(name, among: known))")
                        throw ExitCode.notFound
                    }
                    Terminal.print("removed \(Terminal.safe(name))")
                }
            }
        }
    }
}
