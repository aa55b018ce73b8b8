import Core
import Testing

@testable import Jobs

/// The items of a job, page by page.
@Suite(.timeLimit(.minutes(15))) struct ItemPagesTests {
    private func ended(_ queue: Queue) async throws -> JobID {
        let job = try await queue.job(7)
        for (index, item) in try await queue.claim().enumerated() {
            queue.clock.advance(1_000)
            // Sizes 3, 6, 2, 5, 1, 4; the last one fails.
            if index == 6 {
                try await queue.end(item, .failed(Failure(.notAnImage, "text")))
            } else {
                try await queue.end(item, item.completion(clock: queue.clock, bytes: Int64(3 * (index + 1) % 7)))
            }
        }
        return job
    }

    private func pages(_ queue: Queue, _ job: JobID, _ query: ItemQuery) async throws -> [[Int64]] {
        var query = query
        var pages: [[Int64]] = []
        let sorted = SortedItems(queue.store.reports, patience: .seconds(600))
        repeat {
            let page =
                if let sort = query.sort {
                    try await sorted.page(job: job, query, sortedBy: sort)
                } else {
                    try await queue.store.reports.items(job: job, query)
                }
            #expect(page.progress == nil)
            pages.append(page.items.map(\.id))
            query.after = page.next
        } while query.after != nil && pages.count < 20
        return pages
    }

    @Test func `Items come in the order of their ids, or by a column with the largest first`() async throws {
        try await withQueue { (queue) async throws -> Void in
            let job = try await ended(queue)
            var query = ItemQuery()
            query.limit = 3
            #expect(try await pages(queue, job, query) == [[1, 2, 3], [4, 5, 6], [7]])
            query.sort = .ended
            #expect(try await pages(queue, job, query) == [[7, 6, 5], [4, 3, 2], [1]])
            query.sort = .bytes
            #expect(try await pages(queue, job, query) == [[2, 4, 6], [1, 3, 5], [7]])
            query.state = "done"
            #expect(try await pages(queue, job, query) == [[2, 4, 6], [1, 3, 5]])
            query.sort = .tries
            query.after = .max
            #expect(try await pages(queue, job, query) == [[]])
        }
    }

    @Test(.enabled(if: Shell.isThere, Shell.missing))
    func `A job's items are sorted also if most ids between them belong to other jobs`() async throws {
        try await withTemporaryQueue { queue in
            let job = try await queue.job(2)
            _ = try await queue.job(9)
            try queue.shell.expect(
                """
                INSERT INTO items (job, url) VALUES (\(job), 'https://example.com/a'), (\(job), 'https://example.com/b');
                UPDATE items SET attempts = id;
                """)
            var query = ItemQuery()
            query.sort = .tries
            for slice in [1, 3, 100] {
                let sorted = SortedItems(queue.store.reports, slice: slice, patience: .seconds(600))
                let page = try await sorted.page(job: job, query, sortedBy: .tries)
                #expect(page.items.map(\.id) == [13, 12, 2, 1] && page.next == nil)
            }
        }
    }

    @Test func `Sorting a large job takes several requests, each of which says how far it is`() async throws {
        try await withQueue { (queue) async throws -> Void in
            let job = try await ended(queue)
            let sorted = SortedItems(queue.store.reports, slice: 2, patience: .zero)
            var query = ItemQuery()
            query.limit = 3
            query.sort = .bytes
            var progress: [Double] = []
            var ids: [[Int64]] = []
            repeat {
                let page = try await sorted.page(job: job, query, sortedBy: .bytes)
                query.after = page.next
                if let share = page.progress {
                    #expect(page.items.isEmpty && page.next != nil)
                    progress.append(share)
                } else {
                    ids.append(page.items.map(\.id))
                }
            } while query.after != nil && ids.count < 20
            #expect(progress.map { Int(6 * $0 + 0.5) } == [1, 3, 5, 6])
            #expect(ids == [[2, 4, 6], [1, 3, 5], [7]])
        }
    }

    @Test func `The first items of an order are shown, whatever the job's size`() async throws {
        try await withQueue { (queue) async throws -> Void in
            let count = SortedItems.maxShown + 2_500
            let job = try await queue.job(count)
            let sorted = SortedItems(queue.store.reports, slice: 6_000, patience: .seconds(600))
            var query = ItemQuery()
            (query.sort, query.limit, query.after) = (.tries, 500, Int64(SortedItems.maxShown - 500))
            let page = try await sorted.page(job: job, query, sortedBy: .tries)
            #expect(page.items.count == 500 && page.items.last?.id == Int64(SortedItems.maxShown) && page.next == nil)
        }
    }
}
