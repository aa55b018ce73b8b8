/// Migration 17: a job that a shell cancels has an end, as one that `worker cancel` does, and so is pruned in its time.
extension Schema {
    static let ends = """
        CREATE TRIGGER jobs_note_end AFTER UPDATE OF state ON jobs
        WHEN OLD.state <> NEW.state AND (NEW.state = 'finished' OR NEW.state = 'cancelled' OR NEW.state = 'failed')
            AND NEW.finished_at IS NULL BEGIN
            UPDATE jobs SET finished_at = \(now) WHERE id = NEW.id;
        END;
        UPDATE jobs SET finished_at = \(now) WHERE state IN ('finished', 'cancelled', 'failed') AND finished_at IS NULL;
        """
}
