import Download
import Foundation
import Jobs
import PrefetchWorker
import SystemPackage
import TestSupport
import Testing

/// The hook that changes an item's variants, options, headers and priority.
@Suite("The options hook", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct OptionsHookTests {
    private struct Chooser: WorkerDelegate {
        let hooks: Set<DelegateHook> = [.options]

        func settings(_ settings: ItemSettings, of url: String, item: DelegatedItem) async -> ItemSettings {
            var settings = settings
            if url.hasSuffix("/b") { settings.variants = "small=8x6,png" }
            if url.hasSuffix("/c") { settings.options = "discard-original" }
            if url.hasSuffix("/d") { settings.headers["X-Own"] = "d" }
            if url.hasSuffix("/e") { settings.variants = "no variant" }
            return settings
        }
    }

    @Test func `A delegate can set variants, options and headers for each item`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.delegate = Chooser() }) { place in
            let job = try await place.enqueue(
                ["/a", "/b", "/c", "/d", "/e"].map { origin.url($0) }, variants: "v=20x,webp")
            try await place.drain()
            let results = try await place.store.reports.results(job: job, after: 0, limit: 20)
            func names(_ path: String) -> [String] {
                results.filter { $0.url == origin.url(path) }.compactMap(\.variant).sorted()
            }
            #expect(names("/a") == ["original", "v"])
            #expect(names("/b") == ["original", "small"])
            #expect(names("/c") == ["v"])
            #expect(results.first { $0.url == origin.url("/e") }?.failure == "delegate")
            #expect(origin.requests.filter { $0.header("X-Own") == "d" }.map(\.path) == ["/d"])
        }
    }

    private struct Listener: WorkerDelegate {
        let hooks: Set<DelegateHook> = [.options]
        let heard = Shared<[ItemSettings]>([])
        let items = Shared<[DelegatedItem]>([])

        func settings(_ settings: ItemSettings, of url: String, item: DelegatedItem) async -> ItemSettings {
            heard.withLock { $0.append(settings) }
            items.withLock { $0.append(item) }
            return settings
        }
    }

    @Test func `A delegate gets the item's variants, options, headers and priority`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        let listener = Listener()
        try await withWorkplace(configure: { $0.delegate = listener }) { (place) async throws in
            var item = NewItem(url: origin.url("/a"))
            (item.priority, item.headers, item.meta) = (7, ["X-Own": "1"], #"{"shop":3}"#)
            var job = NewJob(
                urls: [], variants: "v=20x,webp", options: "discard-original", headers: ["X-Job": "2"])
            job.items = [item]
            _ = try await place.store.queue.enqueue(job)
            try await place.drain()
            let heard = try #require(listener.heard.withLock { $0.first })
            #expect((heard.variants, heard.options, heard.priority) == ("v=20x,webp", "discard-original", 7))
            #expect(heard.headers == ["X-Own": "1", "X-Job": "2"])
            #expect(listener.items.withLock { $0.map(\.meta) } == [#"{"shop":3}"#])
        }
    }

    private struct Urgent: WorkerDelegate {
        let hooks: Set<DelegateHook> = [.options]
        let byOption: Bool

        func settings(_ settings: ItemSettings, of url: String, item: DelegatedItem) async -> ItemSettings {
            var settings = settings
            if url.hasSuffix("/c"), byOption { settings.options = "high-priority" }
            if url.hasSuffix("/c"), !byOption { settings.priority = .max }
            return settings
        }
    }

    /// Also if the item had a priority of its own before.
    @Test(arguments: [(nil, false), (nil, true), (-7, false)])
    func `A priority from the delegate moves an item ahead of waiting items`(own: Int?, byOption: Bool) async throws {
        let isOpen = Shared(false)
        let origin = try LoopbackOrigin { request in
            while request.path == "/0", !isOpen.withLock({ $0 }) { usleepMilliseconds(2) }
            return .ok(Pictures.jpeg)
        }
        try await withWorkplace(configure: {
            $0.delegate = Urgent(byOption: byOption)
            $0.downloads.concurrency = 1
            $0.downloads.silenceTimeout = .seconds(120)
        }) { (place) async throws in
            _ = try await place.enqueue([origin.url("/0")])
            async let run = place.drain()
            let isTaken = await eventually { origin.requests.count == 1 }
            let items = ["/a", "/b", "/c"].map { path in
                var item = NewItem(url: origin.url(path))
                item.priority = own
                return item
            }
            var waiting = NewJob(urls: [])
            waiting.items = items
            let job = try #require(try await place.store.queue.enqueue(waiting))
            let isWaiting = try await eventually { try await place.progress(job).active == 3 }
            #expect(isTaken && isWaiting)
            // The hook is asked before an item waits for its download. Places are examined twice a second.
            try await Task.sleep(for: .milliseconds(own == nil ? 300 : 1_500))
            isOpen.withLock { $0 = true }
            _ = try await run
            #expect(origin.requests.map(\.path) == ["/0", "/c", "/a", "/b"])
        }
    }

    /// Each answer to `options`, and how its item ends.
    @Test(arguments: [
        (#"{"variants":"small=8x6,png","options":"discard-original","headers":{"X-Own":"1"},"priority":7}"#, "done"),
        (#"{"priority":9223372036854775807}"#, "done"), (#"{"priority":-101}"#, "done"),
        (#"{"options":""}"#, "done"), (#"{"variants":""}"#, "done"), (#"{"unknown":[1]}"#, "done"),
        (#"{"priority":1e300}"#, "delegate"), (#"{"priority":"high"}"#, "delegate"),
        (#"{"variants":["a=8x"]}"#, "delegate"), (#"{"variants":"a=999999999999999999999x"}"#, "delegate"),
        (#"{"options":"fly"}"#, "delegate"), (#"{"options":"max-tries=99999999999999999999"}"#, "delegate"),
        (#"{"headers":{"X-Own":1}}"#, "delegate"), (#"{"headers":{"X-Own":"a\r\nb"}}"#, "delegate"),
        (#"[]"#, "delegate"), ("", "delegate"), ("\u{FFFD}{", "delegate"),
    ])
    func `A command changes an item's settings, and an invalid answer fails that item only`(
        answer: String, ending: String,
    ) async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withTemporaryDirectory { folder in
            try Data(answer.utf8).write(to: URL(filePath: folder.appending("answer").string))
            let path = try DelegateHookTests.command(
                folder, #"case "$line" in */changed*) cat '\#(folder)/answer';; *) echo '{}';; esac"#)
            try await withWorkplace(configure: {
                $0.delegateCommand = try? DelegateCommand(parsing: "\(path):options")
            }) { place in
                let urls = ["/changed", "/plain"].map { origin.url($0) }
                let job = try await place.enqueue(urls, variants: "v=20x,webp")
                try await place.drain()
                let results = try await place.store.reports.results(job: job, after: 0, limit: 20)
                let changed = results.filter { $0.url == urls[0] }
                #expect(changed.allSatisfy { ($0.failure ?? $0.state.rawValue) == ending }, "\(changed)")
                #expect(results.filter { $0.url == urls[1] }.compactMap(\.variant).sorted() == ["original", "v"])
                if answer.contains("small") {
                    #expect(changed.compactMap(\.variant) == ["small"])
                    #expect(origin.requests.first { $0.path == "/changed" }?.header("X-Own") == "1")
                }
            }
        }
    }
}
