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
        repeat {
            let page = try await queue.store.reports.items(job: job, query)
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

    @Test func `Sorting a job with too many items is refused with a sentence`() async throws {
        try await withQueue { (queue) async throws -> Void in
            let job = try await queue.job(ItemQuery.maxSorted + 1)
            var query = ItemQuery()
            query.sort = .bytes
            let sorted = query
            let error = await #expect(throws: JobsError.self) {
                _ = try await queue.store.reports.items(job: job, sorted)
            }
            #expect(error?.message.hasPrefix("Job 1 has 100001 items. Up to 100000 can be sorted") == true)
            query.sort = nil
            #expect(try await queue.store.reports.items(job: job, query).items.count == 50)
        }
    }
}
