/// Migration 8: what SQL says of time goes by the clock that doesn't jump, too.
///
/// SQL knows neither the kernel's uptime nor how the machine's clock has moved since the cache's clock was written down, which
/// running workers do within a second of a jump. So it judges as that clock does across boots: time that goes back, or
/// forward by more than a year, is no time at all.
extension Schema {
    /// A time of the machine's clock by the one that doesn't jump.
    private static func steady(_ time: String) -> String {
        """
        (SELECT CASE WHEN shift IS NULL OR wall IS NULL THEN \(time)
            WHEN \(time) < wall OR \(time) - wall > \(CacheClock.longestAbsence) THEN wall - shift
            ELSE \(time) - shift END
            FROM (SELECT json_extract(clock, '$.wall') AS wall, json_extract(clock, '$.shift') AS shift
                FROM (SELECT (SELECT CASE WHEN json_valid(value) THEN value END FROM cache_properties
                    WHERE name = 'clock') AS clock)))
        """
    }

    static let steadyTime = """
        DROP VIEW blacklist;
        CREATE VIEW blacklist AS SELECT
            url, host, class, http_status, message, count,
            \(iso("first_at")) AS first_at, \(iso("last_at")) AS last_at, \(iso("expires_at")) AS expires_at
            FROM blacklist_entries WHERE expires_at > \(steady(now));
        CREATE TRIGGER blacklist_delete INSTEAD OF DELETE ON blacklist BEGIN
            DELETE FROM blacklist_entries WHERE url = OLD.url;
        END;

        -- When a job ended, by the clock that retention counts on; jobs.finished_at is the machine's, for people.
        CREATE TABLE job_ends (
            job INTEGER PRIMARY KEY,
            ended_at INTEGER NOT NULL
        );
        \(endsOfJobs);
        CREATE TRIGGER jobs_end AFTER UPDATE OF finished_at ON jobs BEGIN
            DELETE FROM job_ends WHERE job = NEW.id;
            INSERT INTO job_ends SELECT NEW.id, \(steady("NEW.finished_at")) WHERE NEW.finished_at IS NOT NULL;
        END;
        CREATE TRIGGER jobs_forget_end AFTER DELETE ON jobs BEGIN
            DELETE FROM job_ends WHERE job = OLD.id;
        END;
        """

    /// Of all jobs that have ended.
    static let endsOfJobs =
        "INSERT INTO job_ends SELECT id, \(steady("finished_at")) FROM jobs WHERE finished_at IS NOT NULL"
}
