import Core
import FoundationEssentials
import Testing

@testable import Jobs

/// When schedules are due, over changes of the clocks, too.
@Suite("Cron expressions")
struct CronTests {
    /// The first due times after a time in UTC, as the zone's clocks show them.
    private func times(_ cron: String, _ zone: String, after: String, _ count: Int) throws -> [String] {
        let cron = try CronExpression(parsing: cron)
        let zone = try ScheduleZone(named: zone)
        var time = WallTime(milliseconds: Int64(try Date(after, strategy: .iso8601).timeIntervalSince1970 * 1_000))
        return try (0..<count).map { _ in
            time = try #require(cron.next(after: time, in: zone))
            return zone.text(ofMilliseconds: time.milliseconds)
        }
    }

    @Test(arguments: [
        ("17 3 * * *", "2026-01-31T03:17:00Z", ["2026-02-01 03:17 +00:00", "2026-02-02 03:17 +00:00"]),
        ("*/20 * * * *", "2026-01-31T23:39:59Z", ["2026-01-31 23:40 +00:00", "2026-02-01 00:00 +00:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", ["2028-02-29 00:00 +00:00", "2032-02-29 00:00 +00:00"]),
        ("0 12 * * mon-fri", "2026-11-27T12:00:00Z", ["2026-11-30 12:00 +00:00", "2026-12-01 12:00 +00:00"]),
        // Either of the two fields of the day.
        ("0 0 1 * 1", "2026-11-25T00:00:00Z", ["2026-11-30 00:00 +00:00", "2026-12-01 00:00 +00:00"]),
        ("0 0 */31 * 7", "2026-11-25T00:00:00Z", ["2027-08-01 00:00 +00:00", "2028-10-01 00:00 +00:00"]),
        ("5/20,0 1-2 * jan,DEC sun", "2026-12-25T00:00:00Z", ["2026-12-27 01:00 +00:00", "2026-12-27 01:05 +00:00"]),
        ("@weekly", "2026-11-25T00:00:00Z", ["2026-11-29 00:00 +00:00", "2026-12-06 00:00 +00:00"]),
        ("0 0 31 12 *", "1969-06-01T00:00:00Z", ["1969-12-31 00:00 +00:00", "1970-12-31 00:00 +00:00"]),
    ])
    func `A cron expression is due at the expected times`(_ row: (cron: String, after: String, due: [String])) throws {
        #expect(try times(row.cron, "UTC", after: row.after, row.due.count) == row.due)
    }

    @Test(arguments: [
        // Berlin skips 2:00 to 3:00 on 29 March and shows it twice on 25 October.
        (
            "30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
            ["2026-03-28 02:30 +01:00", "2026-03-29 03:00 +02:00", "2026-03-30 02:30 +02:00"]
        ),
        // Three times that are skipped and the one after them are one moment.
        (
            "0,15,30 2,3 29 3 *", "Europe/Berlin", "2026-03-28T00:00:00Z",
            ["2026-03-29 03:00 +02:00", "2026-03-29 03:15 +02:00"]
        ),
        (
            "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
            ["2026-10-25 02:30 +02:00", "2026-10-26 02:30 +01:00"]
        ),
        (
            "30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z",
            ["2026-10-25 02:30 +02:00", "2026-10-25 02:30 +01:00", "2026-10-25 03:30 +01:00"]
        ),
        (
            "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
            ["2026-03-29 01:30 +01:00", "2026-03-29 03:30 +02:00"]
        ),
        (
            "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
            ["2026-11-01 01:30 -04:00", "2026-11-02 01:30 -05:00"]
        ),
        // By half an hour.
        (
            "*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T14:31:00Z",
            [
                "2026-04-05 01:45 +11:00", "2026-04-05 01:30 +10:30", "2026-04-05 01:45 +10:30",
                "2026-04-05 02:00 +10:30",
            ]
        ),
        // A day that has never been.
        (
            "0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
            ["2011-12-29 12:00 -10:00", "2011-12-31 00:00 +14:00", "2011-12-31 12:00 +14:00"]
        ),
    ])
    func `A cron expression is due at the expected times when the clocks change`(
        _ row: (cron: String, zone: String, after: String, due: [String])
    ) throws {
        #expect(try times(row.cron, row.zone, after: row.after, row.due.count) == row.due)
    }

    /// Against each minute of a year, as a clock on the wall shows it.
    @Test(arguments: ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
    func `An expression with steps is due whenever the zone's clock matches, over a whole year`(_ name: String) throws {
        let zone = try ScheduleZone(named: name)
        let begin: Int64 = 1_767_225_600
        for (text, minutes) in [("*/30 * * * *", Set([0, 30])), ("7 */3 * * *", Set([7]))] {
            let cron = try CronExpression(parsing: text)
            var expected: [Int64] = []
            for second in stride(from: begin, to: begin + 366 * 86_400, by: 60) {
                let minute = (second + zone.offset(at: second)) / 60
                guard minutes.contains(Int(minute % 60)), minutes.count == 2 || minute / 60 % 24 % 3 == 0 else {
                    continue
                }
                expected.append(second)
            }
            var found: [Int64] = []
            var time = WallTime(milliseconds: begin * 1_000 - 1)
            while let due = cron.next(after: time, in: zone), due.milliseconds < (begin + 366 * 86_400) * 1_000 {
                found.append(due.milliseconds / 1_000)
                time = due
            }
            #expect(found == expected)
        }
    }

    @Test(arguments: [
        ("", "five fields"), ("* * * *", "five fields"), ("* * * * * *", "five fields"), ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"), ("* * 0 * *", "day of the month"), ("* * * 13 *", "month"), ("* * * * 8", "week"),
        ("5-1 * * * *", "minute"), ("*/0 * * * *", "minute"), ("1,,2 * * * *", "minute"), ("+1 * * * *", "minute"),
        ("1-2-3 * * * *", "minute"), ("99999999999999999999 * * * *", "minute"), ("@never", "five fields"),
        ("* * * * mon-", "week"), ("*/99999999999999999999 * * * *", "minute"), ("-5 * * * *", "minute"),
    ])
    func `An invalid cron expression is refused with the name of the wrong field`(_ text: String, _ words: String) {
        let error = #expect(throws: JobsError.self) { try CronExpression(parsing: text) }
        #expect(error?.code == .refused)
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }

    @Test func `30 February is never due, and no time is due beyond the calendar's range`() throws {
        #expect(try CronExpression(parsing: "0 0 30 2 *").next(after: WallTime(milliseconds: 0), in: .utc) == nil)
        for time in [WallTime.min, .max, WallTime(clamping: .max)] {
            #expect(try CronExpression(parsing: "* * * * *").next(after: time, in: .utc) == nil)
        }
    }

    @Test(arguments: [
        ("Berlin", "Did you mean 'Europe/Berlin'?"), ("Europe/Berlim", "Did you mean 'Europe/Berlin'?"),
        ("EST", "There is no time zone 'EST'."), ("", "There is no time zone ''."),
        ("../../etc/passwd", "no time zone"),
    ])
    func `An unknown time zone is refused with the nearest name`(_ name: String, _ words: String) {
        let error = #expect(throws: JobsError.self) { try ScheduleZone(named: name) }
        #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
    }
}
