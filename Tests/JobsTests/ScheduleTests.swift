import Core
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// Each due run is started once, however many workers look, and is not lost if the worker that began it dies.
@Suite("Schedules", .timeLimit(.minutes(15)))
struct ScheduleTests {
    private final class Clock: Sendable {
        private let milliseconds: Mutex<Int64>

        init(_ time: Int64) { milliseconds = Mutex(time) }

        var now: WallTime { WallTime(milliseconds: milliseconds.withLock { $0 }) }
        func set(_ time: WallTime) { milliseconds.withLock { $0 = time.milliseconds } }
        func pass(_ time: Int64) { milliseconds.withLock { $0 += time } }
    }

    /// Two programs on one database, by one clock. It begins on 1 January 2026.
    private func withTwo(_ body: (JobStore, JobStore, Clock) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            let clock = Clock(1_767_225_600_000)
            let now: @Sendable () -> WallTime = { clock.now }
            let first = try JobStore(path: path, now: now, syncs: false)
            let second = try JobStore(path: path, now: now, syncs: false)
            try await body(first, second, clock)
            #expect(try await first.maintenance.inconsistencies() == [])
            try await first.close()
            try await second.close()
        }
    }

    private func schedule(_ name: String, _ cron: String, _ zone: String = "UTC") throws -> NewSchedule {
        var schedule = NewSchedule(name: name, manifest: "urls: []", cron: try CronExpression(parsing: cron))
        schedule.zone = try ScheduleZone(named: zone)
        return schedule
    }

    private func job(_ run: ScheduleRun) -> NewJob {
        var job = NewJob(urls: [])
        job.name = run.schedule
        job.dedupeKey = "warm:\(run.schedule)"
        return job
    }

    /// Adds the run's job, which has no URLs and is finished at once, so that the next run has one of its own.
    private func finish(_ run: ScheduleRun, in store: JobStore) async throws -> ScheduleOutcome {
        try await store.schedules.finish(run, with: job(run), rows: ListRows([]))
    }

    /// Every day has runs, and the days on which the clocks of the zones change, Sundays, have more. Now and then a person
    /// starts a run, or warms the batch of a schedule, at the moment at which both workers look.
    @Test func `Two workers, a person and a manual warm start each run of a year once, in three zones`() async throws {
        let zones = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
        try await withTwo { first, second, clock in
            let begin = clock.now
            for (index, zone) in zones.enumerated() {
                try await first.schedules.put(schedule("daily\(index)", "30 1,2 * * *", zone))
                try await first.schedules.put(schedule("often\(index)", "15 */4 * * sun", zone))
            }
            var started: [String: [WallTime]] = [:]
            var day = 0
            let end = begin + 366 * 86_400_000
            while let turn = try await first.schedules.nextTurn(), turn < end {
                clock.set(turn)
                day += 1
                let (byHand, isWarmed) = (day % 50 == 25, day.isMultiple(of: 50))
                var warm = NewJob(urls: ["https://a.example/\(turn.milliseconds).jpg"])
                warm.dedupeKey = "warm:daily0"
                async let warmed = isWarmed ? second.queue.enqueue(warm) : nil
                let runs = try await withThrowingTaskGroup(of: [ScheduleRun].self) { group in
                    for store in [first, second] {
                        group.addTask {
                            var runs: [ScheduleRun] = []
                            while let run = try await store.schedules.take() {
                                runs.append(run)
                                switch try await finish(run, in: store) {
                                case .enqueued: break
                                // The warm's job is the unfinished one of this batch.
                                case .joined where isWarmed && run.schedule == "daily0": break
                                default: Issue.record("\(run.schedule) at \(run.due) was not enqueued")
                                }
                            }
                            return runs
                        }
                    }
                    if byHand {
                        group.addTask {
                            if let run = try await second.schedules.takeNow("daily0") {
                                _ = try await finish(run, in: second)
                            }
                            return []
                        }
                    }
                    return try await group.reduce(into: []) { $0 += $1 }
                }
                let added = try await warmed
                #expect((added != nil) == isWarmed)
                if let added { try await first.control.cancel(job: added) }
                for run in runs { started[run.schedule, default: []].append(run.due) }
            }
            for (index, zone) in zones.enumerated() {
                for (name, cron) in [("daily\(index)", "30 1,2 * * *"), ("often\(index)", "15 */4 * * sun")] {
                    let cron = try CronExpression(parsing: cron)
                    var due: [WallTime] = []
                    while let next = try cron.next(after: due.last ?? begin, in: ScheduleZone(named: zone)), next < end
                    {
                        due.append(next)
                    }
                    let isAsDue = started[name] == due
                    #expect(isAsDue, "\(name): \(started[name]?.count ?? 0) of \(due.count)")
                    #expect(due.count > 100)
                }
            }
        }
    }

    @Test func `Two workers that look at the same moment start each run once`() async throws {
        try await withTwo { first, second, clock in
            for number in 0..<20 { try await first.schedules.put(schedule("s\(number)", "* * * * *")) }
            clock.pass(60_000)
            let runs = try await withThrowingTaskGroup(of: [String].self) { group in
                for store in [first, second] {
                    group.addTask {
                        var names: [String] = []
                        while let run = try await store.schedules.take() { names.append(run.schedule) }
                        return names
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(runs.sorted() == (0..<20).map { "s\($0)" }.sorted())
        }
    }

    @Test func `The run of a dead program is taken over, and that program adds no job afterwards`() async throws {
        try await withTwo { first, second, clock in
            try await first.schedules.put(schedule("nightly", "0 3 * * *"))
            clock.pass(3 * 3_600_000)
            let run = try #require(try await first.schedules.take())
            #expect(try await second.schedules.take() == nil)
            clock.pass(ScheduleBook.claimDuration - 1)
            #expect(try await second.schedules.take() == nil)
            // Its lists take long.
            try await first.schedules.renew(run)
            clock.pass(ScheduleBook.claimDuration - 1)
            #expect(try await second.schedules.take() == nil)
            clock.pass(1)
            let again = try #require(try await second.schedules.take())
            #expect(again.due == run.due)
            #expect(try await finish(run, in: first) == .lost)
            #expect(try await finish(again, in: second) == .enqueued(1))
            #expect(try await finish(again, in: second) == .lost)
            #expect(try await second.schedules.take() == nil)
        }
    }

    @Test func `A released run is taken at once, and a run that no worker finishes fails`() async throws {
        try await withTwo { first, second, clock in
            try await first.schedules.put(schedule("nightly", "0 3 * * *"))
            clock.pass(3 * 3_600_000)
            let run = try #require(try await first.schedules.take())
            try await first.schedules.release(run)
            for _ in 0..<ScheduleBook.maxTakers {
                let again = try await second.schedules.take()
                #expect(again?.due == run.due)
                clock.pass(ScheduleBook.claimDuration)
            }
            #expect(try await second.schedules.take() == nil)
            let record = try #require(try await first.schedules.all().first)
            #expect(record.last?.outcome == "failed")
            #expect(record.last?.message?.contains("none finished") == true)
            #expect(try await second.schedules.nextTurn() == record.startsAt)
        }
    }

    @Test func `After years without a worker the last due run of each schedule is found`() async throws {
        let cases = [
            ("* * * * *", "2036-01-01 00:00 +00:00"), ("7 */6 * * mon", "2035-12-31 18:07 +00:00"),
            ("* * * 1 *", "2036-01-01 00:00 +00:00"), ("0 0 29 2 *", "2032-02-29 00:00 +00:00"),
        ]
        try await withTwo { first, _, clock in
            for (number, (cron, _)) in cases.enumerated() {
                try await first.schedules.put(schedule("s\(number)", cron))
            }
            clock.set(WallTime(milliseconds: 2_082_758_400_000))
            var found: [String: String] = [:]
            while let run = try await first.schedules.take() {
                #expect(found[run.schedule] == nil)
                found[run.schedule] = ScheduleZone.utc.text(ofMilliseconds: run.due.milliseconds)
                _ = try await finish(run, in: first)
            }
            for (number, (cron, due)) in cases.enumerated() { #expect(found["s\(number)"] == due, "\(cron)") }
        }
    }

    @Test func `A run that was planned by a clock that was ahead is planned anew, and no run is made twice`()
        async throws
    {
        try await withTwo { first, _, clock in
            let now = clock.now
            clock.set(now + 3_650 * 86_400_000)
            try await first.schedules.put(schedule("hourly", "@hourly"))
            clock.set(now)
            try await first.schedules.planAnew()
            #expect(try await first.schedules.all().first?.nextDue == now + 3_600_000)
            clock.set(now + 3_600_000)
            let run = try #require(try await first.schedules.take())
            _ = try await finish(run, in: first)
            // Set back by a second.
            clock.pass(-1_000)
            try await first.schedules.planAnew()
            #expect(try await first.schedules.all().first?.nextDue == now + 7_200_000)
        }
    }

    @Test func `A run joins the job of the last run while that job is unfinished`() async throws {
        try await withTwo { first, _, clock in
            try await first.schedules.put(schedule("hourly", "@hourly"))
            clock.pass(3_600_000)
            var run = try #require(try await first.schedules.take())
            let rows = ListRows([("https://a.example/1.jpg", nil)])
            #expect(try await first.schedules.finish(run, with: job(run), rows: rows) == .enqueued(1))
            clock.pass(3_600_000)
            run = try #require(try await first.schedules.take())
            #expect(try await first.schedules.finish(run, with: job(run), rows: rows) == .joined(1))
            let record = try #require(try await first.schedules.all().first)
            #expect(record.last?.outcome == "joined")
            #expect(record.last?.job == 1)
        }
    }

    @Test(arguments: [(MissedRuns.once, 1, "enqueued"), (.skip, 0, "skipped")])
    func `Missed runs are made up for once, or skipped`(
        _ missed: MissedRuns, _ count: Int, _ outcome: String,
    ) async throws {
        try await withTwo { first, _, clock in
            var schedule = try schedule("nightly", "0 3 * * *")
            schedule.missed = missed
            try await first.schedules.put(schedule)
            // Ten nights, and a morning.
            clock.pass(10 * 86_400_000 + 9 * 3_600_000)
            var runs: [ScheduleRun] = []
            while let run = try await first.schedules.take() {
                runs.append(run)
                _ = try await finish(run, in: first)
            }
            #expect(runs.count == count)
            let record = try #require(try await first.schedules.all().first)
            #expect(record.last?.outcome == outcome)
            let zone = ScheduleZone.utc
            #expect(record.last.map { zone.text(ofMilliseconds: $0.dueAt.milliseconds) } == "2026-01-11 03:00 +00:00")
            #expect(record.nextDue.map { zone.text(ofMilliseconds: $0.milliseconds) } == "2026-01-12 03:00 +00:00")
        }
    }

    @Test func `Starts are spread over the jitter, and every worker computes the same start`() async throws {
        let due = WallTime(milliseconds: 1_767_225_600_000)
        let starts = (0..<100).map { ScheduleBook.start(of: "s\($0)", due, 600_000) - due }
        #expect(starts.allSatisfy { (0..<600_000).contains($0) })
        #expect(Set(starts).count > 90)
        #expect(starts.max() ?? 0 > 500_000)
        try await withTwo { first, second, clock in
            var schedule = try schedule("nightly", "0 3 * * *")
            schedule.jitter = 600_000
            try await first.schedules.put(schedule)
            let record = try #require(try await second.schedules.all().first)
            let start = try #require(record.startsAt)
            clock.set(start - 1)
            #expect(try await second.schedules.take() == nil)
            clock.set(start)
            let run = try #require(try await second.schedules.take())
            #expect(run.due == record.nextDue)
        }
    }

    @Test func `A paused schedule is not due, and goes on with its next time`() async throws {
        try await withTwo { first, _, clock in
            try await first.schedules.put(schedule("hourly", "@hourly"))
            #expect(try await first.schedules.setPaused("hourly", true))
            clock.pass(10 * 3_600_000)
            #expect(try await first.schedules.take() == nil)
            #expect(try await first.schedules.nextTurn() == nil)
            #expect(try await first.schedules.setPaused("hourly", false))
            #expect(try await first.schedules.take() == nil)
            clock.pass(3_600_000)
            #expect(try await first.schedules.take() != nil)
            #expect(try await first.schedules.setPaused("nightly", true) == false)
        }
    }

    @Test func `A schedule that SQL inserted is planned, or has an error`() async throws {
        try await withTwo { first, _, clock in
            try await first.database.write { db in
                for (name, cron, zone) in [
                    ("good", "@hourly", "UTC"), ("bad", "often", "UTC"), ("lost", "@daily", "Mars"),
                ] {
                    try db.run(
                        "INSERT INTO schedules (name, manifest, cron, time_zone) VALUES (?, 'urls: []', ?, ?)",
                        [name, cron, zone])
                }
            }
            #expect(try await first.schedules.take() == nil)
            let records = try await first.schedules.all()
            #expect(records.map { $0.error?.prefix(22) } == ["'often' is no schedule", nil, "There is no time zone "])
            clock.pass(3_600_000)
            #expect(try await first.schedules.take()?.schedule == "good")
            #expect(try await first.schedules.take() == nil)
            try await first.database.write { db in
                try db.run("UPDATE schedules SET cron = '@hourly' WHERE name = 'bad'")
            }
            #expect(try await first.schedules.take() == nil)
            clock.pass(3_600_000)
            let names = [try await first.schedules.take()?.schedule, try await first.schedules.take()?.schedule]
            #expect(Set(names) == ["good", "bad"])
        }
    }

    @Test func `Replacing a schedule keeps its runs, and removing a schedule deletes them`() async throws {
        try await withTwo { first, _, clock in
            #expect(try await first.schedules.put(schedule("hourly", "@hourly")).isNew)
            clock.pass(3_600_000)
            let run = try #require(try await first.schedules.take())
            #expect(try await finish(run, in: first) == .enqueued(1))
            #expect(try await first.schedules.put(schedule("hourly", "@daily")).isNew == false)
            #expect(try await first.schedules.all().first?.last?.job == 1)
            #expect(try await first.schedules.remove("hourly"))
            #expect(try await first.schedules.remove("hourly") == false)
            #expect(try await first.schedules.put(schedule("hourly", "@hourly")).isNew)
            #expect(try await first.schedules.all().first?.last == nil)
            let error = await #expect(throws: JobsError.self) {
                try await first.schedules.put(schedule("never", "0 0 30 2 *"))
            }
            #expect(error?.message.contains("is never due") == true)
        }
    }

    @Test func `The last hundred runs are kept`() async throws {
        try await withTwo { first, _, clock in
            try await first.schedules.put(schedule("often", "* * * * *"))
            for _ in 0..<120 {
                clock.pass(60_000)
                let run = try #require(try await first.schedules.take())
                _ = try await finish(run, in: first)
            }
            let count = try await first.database.read { db in try db.integer("SELECT count(*) FROM schedule_runs") }
            #expect(count == Int64(ScheduleBook.keptRuns))
        }
    }
}
