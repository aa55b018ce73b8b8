/// Schedules and their runs.
enum ScheduleSchema {
    /// The longest time over which the starts of a schedule are spread: a day, in milliseconds.
    static let longestJitter: Int64 = 86_400_000

    static let tables = """
        -- manifest: what each run enqueues, as YAML; origin: the file that it was read from, for messages. next_due and
        -- starts_at, by the machine's clock, are null until a worker has planned them; error: why it can't.
        CREATE TABLE schedules (
            name TEXT PRIMARY KEY NOT NULL CONSTRAINT "the name of a schedule has 1 to 100 characters"
                CHECK (typeof(name) = 'text' AND length(name) BETWEEN 1 AND 100),
            manifest TEXT NOT NULL CONSTRAINT "manifest is a text of at most 16 MiB"
                CHECK (typeof(manifest) = 'text' AND length(manifest) <= 16777216),
            origin TEXT,
            cron TEXT NOT NULL,
            time_zone TEXT NOT NULL DEFAULT 'UTC',
            jitter INTEGER NOT NULL DEFAULT 0 CONSTRAINT "jitter is a whole number of milliseconds, from 0 to a day"
                CHECK (typeof(jitter) = 'integer' AND jitter BETWEEN 0 AND \(longestJitter)),
            missed TEXT NOT NULL DEFAULT 'once' CONSTRAINT "missed is 'once' or 'skip'"
                CHECK (missed = 'once' OR missed = 'skip'),
            paused INTEGER NOT NULL DEFAULT 0 CONSTRAINT "paused is 0 or 1" CHECK (paused IS 0 OR paused IS 1),
            next_due INTEGER,
            starts_at INTEGER,
            error TEXT
        ) WITHOUT ROWID;
        CREATE TRIGGER schedules_plan_anew AFTER UPDATE OF cron, time_zone, jitter, paused ON schedules
        WHEN \(Schema.changesAny(of: ["cron", "time_zone", "jitter", "paused"])) BEGIN
            UPDATE schedules SET next_due = NULL, starts_at = NULL, error = NULL WHERE name = NEW.name;
        END;

        -- outcome: null while a program reads the sources; then enqueued, joined (the job of an earlier run was unfinished),
        -- failed or skipped. token: marks the program that reads the sources. takers: how many programs have begun to read
        -- them. Times by the machine's clock.
        CREATE TABLE schedule_runs (
            schedule TEXT NOT NULL,
            due_at INTEGER NOT NULL,
            taken_at INTEGER NOT NULL,
            token INTEGER,
            takers INTEGER NOT NULL DEFAULT 1,
            outcome TEXT,
            ended_at INTEGER,
            job INTEGER,
            message TEXT,
            PRIMARY KEY (schedule, due_at)
        ) WITHOUT ROWID;
        CREATE INDEX schedule_runs_open ON schedule_runs (taken_at) WHERE outcome IS NULL;
        CREATE TRIGGER schedules_delete AFTER DELETE ON schedules BEGIN
            DELETE FROM schedule_runs WHERE schedule = OLD.name;
        END;
        """
}
