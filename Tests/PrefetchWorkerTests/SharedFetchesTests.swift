import Synchronization
import Testing

@testable import PrefetchWorker

@Suite("Shared fetches", .timeLimit(.minutes(15)))
struct SharedFetchesTests {
    /// A fetch that ends when it is told to or cancelled, and says which.
    private final class Origin: Sendable {
        let started = Atomic<Int>(0)
        let isOpen = Atomic<Bool>(false)

        func fetch() async -> String {
            started.wrappingAdd(1, ordering: .relaxed)
            while !isOpen.load(ordering: .relaxed) {
                if Task.isCancelled { return "cancelled" }
                try? await Task.sleep(for: .milliseconds(2))
            }
            return "body"
        }

        var starts: Int { started.load(ordering: .relaxed) }
    }

    private let fetches = SharedFetches<String>()
    private let origin = Origin()

    private func asker(_ key: String = "a") -> Task<String, Never> {
        Task { [fetches, origin] in
            let value = await fetches.join(key) { await origin.fetch() }
            fetches.leave(key)
            return value
        }
    }

    /// Until as many have asked as are expected; each joins as soon as its task runs.
    private func settle() async { try? await Task.sleep(for: .milliseconds(50)) }

    @Test func `Concurrent requests for one key share one fetch`() async {
        let askers = (0..<10).map { _ in asker() }
        await settle()
        origin.isOpen.store(true, ordering: .relaxed)
        for asker in askers { #expect(await asker.value == "body") }
        #expect(origin.starts == 1)
        #expect(fetches.isIdle)
    }

    /// The downloader's cancellation handler holds its lock and reads places under that lock.
    @Test func `A cancelled fetch may read its place in its cancellation handler`() async {
        let asker = Task { [fetches, origin] in
            let value = await fetches.join("a", user: 7, position: FetchPosition(priority: 1, rank: 1)) {
                await withTaskCancellationHandler {
                    await origin.fetch()
                } onCancel: {
                    _ = fetches.position("a")
                }
            }
            fetches.leave("a", user: 7)
            return value
        }
        await settle()
        asker.cancel()
        #expect(await asker.value == "cancelled")
        #expect(fetches.isIdle)
    }

    @Test func `Waiting users of one fetch are listed together`() async {
        let askers = ([7, 3, 9] as [Int64]).map { user in
            Task { [fetches, origin] in
                let place = FetchPosition(priority: 0, rank: user)
                _ = await fetches.join("a", user: user, position: place) { await origin.fetch() }
                fetches.leave("a", user: user)
            }
        }
        while fetches.sharers.values.first?.count != 3 { await Task.yield() }
        #expect(fetches.sharers.values.first?.sorted() == [3, 7, 9])
        origin.isOpen.store(true, ordering: .relaxed)
        for asker in askers { await asker.value }
        #expect(fetches.sharers.isEmpty)
    }

    @Test func `Different keys are different fetches`() async {
        origin.isOpen.store(true, ordering: .relaxed)
        let askers = ["a", "b", "c"].map { asker($0) }
        for asker in askers { #expect(await asker.value == "body") }
        #expect(origin.starts == 3)
    }

    @Test func `Cancelling the first user doesn't cancel the fetch of the second`() async {
        let first = asker()
        await settle()
        let second = asker()
        await settle()
        first.cancel()
        await settle()
        origin.isOpen.store(true, ordering: .relaxed)
        #expect(await second.value == "body")
        #expect(await first.value == "body")
        #expect(fetches.isIdle)
    }

    @Test(arguments: [1, 2, 5])
    func `A fetch is cancelled with its last user`(_ count: Int) async {
        let askers = (0..<count).map { _ in asker() }
        await settle()
        for asker in askers { asker.cancel() }
        for asker in askers { #expect(await asker.value == "cancelled") }
        #expect(fetches.isIdle)
    }

    @Test func `A user that is cancelled before it joins gets a cancelled fetch`() async {
        let asker = Task { [fetches, origin] in
            while !Task.isCancelled { await Task.yield() }
            let value = await fetches.join("a") { await origin.fetch() }
            fetches.leave("a")
            return value
        }
        asker.cancel()
        #expect(await asker.value == "cancelled")
    }

    @Test func `A fetched result stays shared until its last user has left`() async {
        origin.isOpen.store(true, ordering: .relaxed)
        let first = await fetches.join("a") { [origin] in await origin.fetch() }
        let second = await fetches.join("a") { "fetched again" }
        #expect((first, second) == ("body", "body"))
        fetches.leave("a")
        fetches.leave("a")
        #expect(await fetches.join("a") { "fetched again" } == "fetched again")
        fetches.leave("a")
        #expect(fetches.isIdle)
    }

    /// What a re-ranking told: `name priority rank`.
    private final class Moves: Sendable {
        let told = Shared<[String]>([])
        func note(_ name: Int64, _ position: FetchPosition) {
            told.withLock { $0.append("\(name) \(position.priority) \(position.rank)") }
        }
        var all: [String] { told.withLock { $0 } }
    }

    @Test func `A fetch has the priority of its most urgent remaining user`() async throws {
        let moves = Moves()
        let isOpen = Shared(false)
        let fetches = SharedFetches<Int>(rerank: { moves.note($0, $1) })
        let join: @Sendable (Int64, Int, Int64) -> Task<Int, Never> = { user, priority, rank in
            Task {
                await fetches.join("a", user: user, position: FetchPosition(priority: priority, rank: rank)) {
                    while !isOpen.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(2)) }
                    return 7
                }
            }
        }
        let first = join(1, 0, 5)
        #expect(await eventually { fetches.position("a") == FetchPosition(priority: 0, rank: 5) })
        let urgent = join(2, 50, 9)
        #expect(await eventually { moves.all == ["1 50 9"] })
        let lazy = join(3, -50, 1)
        let older = join(4, 50, 3)
        #expect(await eventually { moves.all == ["1 50 9", "1 50 3"] })
        older.cancel()
        #expect(await eventually { moves.all.last == "1 50 9" })
        urgent.cancel()
        #expect(await eventually { moves.all.last == "1 0 5" })
        isOpen.withLock { $0 = true }
        for task in [first, urgent, lazy, older] { #expect(await task.value == 7) }
        for user in Int64(1)...4 { fetches.leave("a", user: user) }
        #expect(fetches.isIdle)
    }
}
