/// What workers have counted, for metrics and for charts of the last hour.
enum ActivitySchema {
    static let tables = """
        -- counters: since the database was made; only ever more. activity: the same by slots of 30 seconds, for the last
        -- hour; slot is the UTC second at which it begins. Up to its bound a double represents value exactly.
        CREATE TABLE counters (
            name TEXT NOT NULL,
            label TEXT NOT NULL DEFAULT '',
            value INTEGER NOT NULL CONSTRAINT "value is a whole number from 0 to 2^53"
                CHECK (typeof(value) = 'integer' AND value BETWEEN 0 AND 9007199254740992),
            PRIMARY KEY (name, label)
        ) WITHOUT ROWID;
        CREATE TABLE activity (
            slot INTEGER NOT NULL,
            name TEXT NOT NULL,
            label TEXT NOT NULL DEFAULT '',
            value INTEGER NOT NULL CONSTRAINT "value is a whole number from 0 to 2^53"
                CHECK (typeof(value) = 'integer' AND value BETWEEN 0 AND 9007199254740992),
            PRIMARY KEY (slot, name, label)
        ) WITHOUT ROWID;
        """
}
