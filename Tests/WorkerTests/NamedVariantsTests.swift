import TestSupport
import Testing

/// Recipes: variants under names.
@Suite(.timeLimit(.minutes(15))) struct NamedVariantsTests {
    @Test func `A recipe is added, used by a flag, a manifest and SQL, and removed`() async throws {
        try await withWorker { w in
            try await w.run("init")
            #expect(try await w.run("recipe", "list").output.contains("worker recipe add"))
            #expect(try await w.run("recipe", "add", "shop", "thumb=8x8", "card=16x16,webp").line == "added shop")
            #expect(try await w.run("recipe", "add", "shop", "thumb=8x8", "card=16x16,png").line == "replaced shop")
            #expect(try await w.run("recipe", "list").lines == ["name  variants", "shop  thumb=8x8 card=16x16,png"])
            try await w.enqueue(w.url("/1.png"), "--variant", "recipe:shop", "--variant", "big=20x20")
            let batch = try w.file(
                "a.yaml", "urls: ['\(w.url("/2.png"))']\nvariants: [recipe:shop, 'own=4x4']\n")
            #expect(
                try await w.run("manifest", "check", batch, "--offline").output.hasSuffix(
                    "variants own, recipe:shop\n"))
            try await w.run("enqueue", "--manifest", batch)
            try await w.sql(
                "INSERT INTO jobs (urls, variants) VALUES (json_array('\(w.url("/3.png"))'), 'recipe:shop')")
            #expect(try await w.run("recipe", "remove", "shop").line == "removed shop")
            try await w.drain()
            #expect(
                try await w.rows(
                    "SELECT job, group_concat(variant, ' ') FROM (SELECT * FROM results WHERE variant <> 'original' ORDER BY job, variant) GROUP BY job"
                ) == ["1|big card thumb", "2|card own thumb", "3|card thumb"])
        }
    }

    @Test func `An invalid or unknown recipe is refused by its command`() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.run("recipe", "add", "shop", "thumb=8x8")
            let unknown = try await w.run("enqueue", w.url("/1.png"), "--variant", "recipe:shpo", expecting: 64)
            #expect(unknown.errors.contains("There is no recipe 'shpo'. Did you mean 'shop'?"))
            #expect(
                try await w.run("recipe", "remove", "shpo", expecting: 1).errors.contains("Did you mean 'shop'?"))
            for (words, sentence) in [
                (["a b", "thumb=8x8"], "letters, digits"), (["a", "recipe:shop"], "names no other recipe"),
                (["a", "thumb=axb"], "no number of pixels"),
                (["a", "thumb=1x1", "thumb=2x2"], "two variants of the name"),
                (["a", " "], "needs a variant"),
            ] {
                let refused = try await w.run(["recipe", "add"] + words, expecting: 64)
                #expect(refused.errors.contains(sentence), "\(refused.errors)")
            }
            #expect(try await w.value("SELECT count(*) FROM recipes") == "1")
        }
    }
}
