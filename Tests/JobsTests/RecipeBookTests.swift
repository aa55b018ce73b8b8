import Core
import Testing

@testable import Jobs

/// Variants under names, in rows that a program or a shell inserts.
@Suite(.timeLimit(.minutes(15))) struct RecipeBookTests {
    private func withRecipes(_ body: (Queue) async throws -> Void) async throws {
        try await withQueue { (queue) async throws -> Void in
            #expect(try await queue.store.recipes.put(Recipe(name: "shop", variants: "thumb=1x1,webp card=2x2")))
            #expect(try await queue.store.recipes.put(Recipe(name: "shop2", variants: "big=3x3")))
            try await body(queue)
        }
    }

    private func variants(_ text: String?, in queue: Queue) async throws -> String? {
        try await queue.store.database.write { db in
            try db.run(
                "INSERT INTO jobs (urls, variants) VALUES (json_array('https://a.example/1'), ?)", [text])
            return try db.text("SELECT variants FROM jobs WHERE id = last_insert_rowid()")
        }
    }

    @Test func `An INSERT replaces the names of recipes by their variants, and nothing else`() async throws {
        try await withRecipes { (queue) async throws -> Void in
            let cases = [
                ("recipe:shop", "thumb=1x1,webp card=2x2"), ("recipe:shop2", "big=3x3"),
                ("own=9x9 recipe:shop2\n", "own=9x9 big=3x3"),
                (";recipe:shop2;recipe:shop;", "big=3x3 thumb=1x1,webp card=2x2"),
                ("a=1x1,watermark:recipe:shop", "a=1x1,watermark:recipe:shop"),
                (#"[{"name":"recipe:shop"}]"#, #"[{"name":"recipe:shop"}]"#),
                (#" {"name":"a b recipe:shop"}"#, #" {"name":"a b recipe:shop"}"#),
                (#"q="\'recipe:x recipe:shop2"#, #"q="\'recipe:x big=3x3"#),
            ]
            for (given, stored) in cases { #expect(try await variants(given, in: queue) == stored, "\(given)") }
            #expect(try await variants(nil, in: queue) == nil)
        }
    }

    @Test(.onSQLite) func `An item's own variants and an UPDATE may name recipes, too`() async throws {
        try await withRecipes { (queue) async throws -> Void in
            _ = try await variants("recipe:shop2", in: queue)
            try await queue.store.database.write { db in
                try db.script(
                    "INSERT INTO items (job, url, variants) VALUES (1, 'https://a.example/2', 'recipe:shop')")
                #expect(
                    try db.text("SELECT variants FROM items WHERE id = 2") == "thumb=1x1,webp card=2x2"
                )
                try db.script("UPDATE jobs SET variants = 'x=1x1 recipe:shop' WHERE id = 1")
                #expect(try db.text("SELECT variants FROM jobs") == "x=1x1 thumb=1x1,webp card=2x2")
                try db.script("PRAGMA recursive_triggers = ON")
                try db.script("UPDATE jobs SET variants = 'recipe:shop2' WHERE id = 1")
                #expect(try db.text("SELECT variants FROM jobs") == "big=3x3")
                try db.script("PRAGMA recursive_triggers = OFF")
            }
        }
    }

    @Test(arguments: ["recipe:none", "recipe:", "recipe:shop recipe:Shop", "thumb=1x1 recipe:shop,webp"])
    func `A recipe that does not exist is refused, and no row is added`(_ text: String) async throws {
        try await withRecipes { (queue) async throws -> Void in
            await #expect(throws: (any Error).self) { _ = try await variants(text, in: queue) }
            #expect(try await queue.store.reports.progress().isEmpty)
        }
    }

    @Test func `An unknown recipe is refused with the nearest name`() async throws {
        try await withRecipes { (queue) async throws -> Void in
            let error = await #expect(throws: JobsError.self) {
                _ = try await queue.store.queue.enqueue(NewJob(urls: ["https://a.example/1"], variants: "recipe:shp"))
            }
            #expect(error?.message == "There is no recipe 'shp'. Did you mean 'shop'? The recipes are: shop, shop2.")
        }
    }

    @Test func `A job keeps its variants when its recipe changes`() async throws {
        try await withRecipes { (queue) async throws -> Void in
            let job = try #require(
                try await queue.store.queue.enqueue(NewJob(urls: ["https://a.example/1"], variants: "recipe:shop")))
            #expect(try await queue.store.recipes.put(Recipe(name: "shop", variants: "other=5x5")) == false)
            #expect(try await queue.store.recipes.remove("shop2"))
            #expect(try await queue.store.recipes.remove("shop2") == false)
            let stored = try await queue.store.database.read { db in
                try db.text("SELECT variants FROM jobs WHERE id = ?", [job])
            }
            #expect(stored == "thumb=1x1,webp card=2x2")
            #expect(try await queue.store.recipes.all() == [Recipe(name: "shop", variants: "other=5x5")])
        }
    }

    @Test(arguments: [
        ("", "a=1x1"), ("two words", "a=1x1"), ("a:b", "a=1x1"), ("json", #"[{"name":"a"}]"#),
        ("nested", "a=1x1 recipe:b"),
        ("empty", ""),
    ])
    func `An invalid recipe is refused`(_ name: String, _ variants: String) async throws {
        try await withQueue { (queue) async throws -> Void in
            await #expect(throws: JobsError.self) {
                _ = try await queue.store.recipes.put(Recipe(name: name, variants: variants))
            }
        }
    }
}
