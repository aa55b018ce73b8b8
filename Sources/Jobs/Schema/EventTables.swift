/// The log of ended items and of jobs' states, which ``JobEvents`` and the view `events` read.
///
/// A worker writes one row for a group of items that ends together, so an item costs some 20 bytes and no statement of
/// its own. Ids grow in the order of the commits, since each is assigned under the write lock: a reader that continues
/// after the last id that it has seen misses no event and gets none twice.
extension Schema {
    static let eventTables = """
        -- detail is a JSON array of arrays: item (null for a job), job, its new state, and the class of a failure.
        CREATE TABLE event_log (
            id INTEGER PRIMARY KEY AUTOINCREMENT
                CONSTRAINT "the id of an event is left to the database" CHECK (id BETWEEN 1 AND 4503599627370496),
            at INTEGER NOT NULL,
            detail TEXT NOT NULL
        );

        CREATE TRIGGER event_log_refuse_ids BEFORE INSERT ON event_log WHEN NEW.id <> -1 BEGIN
            SELECT RAISE(ABORT, 'the id of an event is left to the database; leave it out of the INSERT');
        END;
        CREATE TRIGGER event_log_keep_ids BEFORE UPDATE OF id, rowid, oid, _rowid_ ON event_log
        WHEN OLD.id <> NEW.id BEGIN
            SELECT RAISE(ABORT, 'the id of an event stays as it is');
        END;

        CREATE VIEW events AS SELECT
            event_log.id * \(eventsPerRow) + part.key AS id, \(iso("event_log.at")) AS at,
            CASE WHEN json_extract(\(eventPart), '$[0]') IS NULL THEN 'job' ELSE 'item' END AS event,
            \(eventJob) AS job, \(eventItem) AS item, items.url AS url,
            json_extract(\(eventPart), '$[2]') AS state, json_extract(\(eventPart), '$[3]') AS class,
            \(json("items.meta")) AS meta
            FROM event_log CROSS JOIN json_each(\(eventDetail)) AS part
            LEFT JOIN items ON items.id = \(eventItem);

        CREATE TRIGGER events_of_new_jobs AFTER INSERT ON jobs BEGIN
            INSERT INTO event_log (at, detail)
                VALUES (\(now), json_array(json_array(NULL, NEW.id, NEW.state)));
        END;
        CREATE TRIGGER events_of_jobs AFTER UPDATE OF state ON jobs WHEN OLD.state <> NEW.state BEGIN
            INSERT INTO event_log (at, detail)
                VALUES (\(now), json_array(json_array(NULL, NEW.id, NEW.state)));
        END;
        """

    /// Maximum events of a row; the ids of a row's events are numbered within it. A worker ends at most 256 items at
    /// once.
    static let eventsPerRow = 1_000

    /// The column, or an empty array if it is no JSON: any program may have written any text.
    static let eventDetail = "CASE WHEN json_valid(event_log.detail) THEN event_log.detail ELSE '[]' END"
    static let eventItem = "CAST(json_extract(\(eventPart), '$[0]') AS INTEGER)"
    static let eventJob = "CAST(json_extract(\(eventPart), '$[1]') AS INTEGER)"
    static let eventPart = "CASE WHEN part.type = 'array' THEN part.value ELSE '[]' END"

    /// Logs the end of an item that is changed by a single statement, in a trigger.
    static let logEnd = """
        INSERT INTO event_log (at, detail)
                SELECT \(now), json_array(json_array(NEW.id, NEW.job,
                    CASE WHEN NEW.state = 'done' AND NEW.cached <> 0 THEN 'cached'
                        WHEN NEW.state = 'failed' AND NEW.blacklisted <> 0 THEN 'blacklisted' ELSE NEW.state END,
                    NEW.class))
                WHERE NEW.state = 'done' OR NEW.state = 'failed' OR NEW.state = 'cancelled';
        """
}
