/// Notices of jobs that ended. A job's column `notify` names the receiver of its notice.
extension Schema {
    /// The value of `notify` that stands for the command with which a worker was started.
    static let notifyCommand = "command"

    static let notifyCheck = refuse(
        "notify must be an http or https URL, or 'command' for the command of worker run --notify-command",
        when: """
            NEW.notify IS NOT NULL AND (typeof(NEW.notify) <> 'text' OR length(NEW.notify) > 2048
                OR NOT (NEW.notify = '\(notifyCommand)' OR NEW.notify GLOB 'http://?*' OR NEW.notify GLOB 'https://?*'))
            """)

    static let noticeTables = """
        -- One for each ended job that has notify; a job that is opened and ends again has a new one. due_at: when a worker
        -- sends it, or takes it over from a worker that died. state: waiting, sent or failed. Times by the machine's clock.
        CREATE TABLE notices (
            job INTEGER PRIMARY KEY,
            state TEXT NOT NULL DEFAULT 'waiting' CONSTRAINT "state of a notice"
                CHECK (state = 'waiting' OR state = 'sent' OR state = 'failed'),
            ended_at INTEGER NOT NULL,
            due_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0,
            told_at INTEGER,
            message TEXT
        );
        CREATE INDEX notices_due ON notices (due_at) WHERE state = 'waiting';
        CREATE TRIGGER jobs_notify AFTER UPDATE OF state ON jobs
        WHEN NEW.notify IS NOT NULL AND OLD.state <> NEW.state
            AND (NEW.state = 'finished' OR NEW.state = 'cancelled' OR NEW.state = 'failed') BEGIN
            INSERT OR REPLACE INTO notices (job, ended_at, due_at) VALUES (NEW.id, \(now), \(now));
        END;
        CREATE TRIGGER jobs_forget_notice AFTER DELETE ON jobs BEGIN
            DELETE FROM notices WHERE job = OLD.id;
        END;
        """
}
