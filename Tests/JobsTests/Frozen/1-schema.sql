PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
INSERT INTO grdb_migrations VALUES('1-schema');
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT,
    urls TEXT,
    variants TEXT,
    options TEXT,
    headers TEXT,
    priority INTEGER NOT NULL DEFAULT 0,
    execution_order TEXT CONSTRAINT "execution_order is fifo or lifo" CHECK (execution_order IN ('fifo', 'lifo')),
    state TEXT NOT NULL DEFAULT 'queued' CONSTRAINT "state of a job" CHECK (state = 'queued' OR state = 'running' OR state = 'paused' OR state = 'finished' OR state = 'cancelled' OR state = 'failed'),
    total INTEGER NOT NULL DEFAULT 0,
    queued INTEGER NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 0,
    delayed INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    cached INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    blacklisted INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    not_new INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
    started_at INTEGER,
    finished_at INTEGER,
    error TEXT,
    dedupe_key TEXT,
    notify TEXT,
    revision INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT "a finished job has nothing left to do"
        CHECK (state <> 'finished' OR queued + active + delayed = 0),
    CONSTRAINT "the counters of a job add up"
        CHECK (total = queued + active + delayed + done + cached + failed + blacklisted + cancelled)
);
INSERT INTO jobs VALUES(1,'old',NULL,'thumb=8x6,webp',NULL,NULL,0,NULL,'queued',2,1,0,0,1,0,0,0,0,0,0,4,NULL,NULL,NULL,NULL,NULL,3);
CREATE TABLE suspension (
    id INTEGER PRIMARY KEY CONSTRAINT "there is one suspension at most" CHECK (id = 1),
    since INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
);
CREATE TABLE job_ends (
    job INTEGER PRIMARY KEY,
    ended_at INTEGER NOT NULL
);
CREATE TABLE recounts (
    job INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL
);
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    url TEXT NOT NULL ON CONFLICT REPLACE DEFAULT '',
    state TEXT NOT NULL DEFAULT 'queued' CONSTRAINT "state of an item" CHECK (state = 'queued' OR state = 'active' OR state = 'delayed' OR state = 'done' OR state = 'failed' OR state = 'cancelled'),
    lease INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    run_at INTEGER,
    class TEXT,
    http_status INTEGER,
    message TEXT,
    cached INTEGER NOT NULL DEFAULT 0,
    blacklisted INTEGER NOT NULL DEFAULT 0,
    source TEXT,
    bytes INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    waits_for TEXT,
    deaths INTEGER NOT NULL DEFAULT 0,
    meta TEXT,
    priority INTEGER,
    variants TEXT,
    headers TEXT,
    sha256 TEXT,
    size INTEGER,
    fallbacks TEXT,
    fallback INTEGER,
    bytes_from TEXT,
    CONSTRAINT "an item is leased exactly while it is active" CHECK ((lease IS NOT NULL) = (state = 'active')),
    CONSTRAINT "an item has a time to run exactly while it is delayed"
        CHECK ((run_at IS NOT NULL) = (state = 'delayed')),
    CONSTRAINT "a failed item has a class" CHECK (state <> 'failed' OR class IS NOT NULL),
    CONSTRAINT "an ended item has an end"
        CHECK (state = 'queued' OR state = 'active' OR state = 'delayed' OR finished_at IS NOT NULL)
);
INSERT INTO items VALUES(1,1,'https://a.example/1.jpg#part','done',NULL,0,NULL,NULL,NULL,NULL,0,0,'aa',NULL,NULL,5,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO items VALUES(2,1,'https://a.example/2.jpg','queued',NULL,0,NULL,NULL,NULL,NULL,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE done_urls (url TEXT NOT NULL, item INTEGER NOT NULL, PRIMARY KEY (url, item)) WITHOUT ROWID;
CREATE TABLE job_additions (job INTEGER PRIMARY KEY);
CREATE TABLE spreading (job INTEGER PRIMARY KEY, failed INTEGER NOT NULL DEFAULT 0);
CREATE TABLE moving (id INTEGER PRIMARY KEY, item INTEGER NOT NULL, state TEXT NOT NULL);
CREATE TABLE replacing (job INTEGER PRIMARY KEY);
CREATE TABLE renditions (
    item INTEGER NOT NULL,
    name TEXT NOT NULL,
    blob TEXT NOT NULL,
    size INTEGER NOT NULL,
    format TEXT NOT NULL,
    width INTEGER,
    height INTEGER,
    PRIMARY KEY (item, name)
) WITHOUT ROWID;
INSERT INTO renditions VALUES(1,'original','aa',10,'jpeg',4,3);
INSERT INTO renditions VALUES(1,'thumb','bb',5,'webp',2,1);
CREATE TABLE tries (
    item INTEGER NOT NULL,
    at INTEGER NOT NULL,
    class TEXT,
    http_status INTEGER,
    message TEXT,
    received INTEGER,
    saved INTEGER,
    redirects INTEGER,
    address TEXT,
    http_version TEXT,
    dns INTEGER,
    connect INTEGER,
    tls INTEGER,
    first_byte INTEGER,
    total INTEGER,
    PRIMARY KEY (item, at)
) WITHOUT ROWID;
INSERT INTO tries VALUES(1,5,NULL,200,NULL,10,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1000);
CREATE TABLE workers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    sharing INTEGER NOT NULL DEFAULT 1,
    helpers INTEGER NOT NULL DEFAULT 0,
    helpers_busy INTEGER NOT NULL DEFAULT 0,
    helpers_waiting INTEGER NOT NULL DEFAULT 0,
    helpers_started INTEGER NOT NULL DEFAULT 0,
    helpers_died INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE leases (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    worker INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    is_alone INTEGER NOT NULL DEFAULT 0
);
INSERT INTO leases VALUES(1,1,1,1,0);
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    modified_at INTEGER NOT NULL DEFAULT 0,
    is_source INTEGER NOT NULL DEFAULT 0,
    dying INTEGER NOT NULL DEFAULT 0,
    verified TEXT,
    lifetime INTEGER
) WITHOUT ROWID;
INSERT INTO blobs VALUES('aa',10,1,2,1,1,0,NULL,NULL);
INSERT INTO blobs VALUES('bb',5,1,2,1,0,0,NULL,NULL);
CREATE TABLE sources (
    key TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    kept INTEGER NOT NULL,
    final_url TEXT,
    format TEXT,
    width INTEGER,
    height INTEGER,
    frames INTEGER,
    has_alpha INTEGER,
    etag TEXT,
    last_modified TEXT,
    fetched_at INTEGER NOT NULL,
    http TEXT,
    used_at INTEGER NOT NULL DEFAULT 0,
    recheck_after INTEGER
) WITHOUT ROWID;
INSERT INTO sources VALUES('https://a.example/1.jpg','aa',10,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,NULL,6,NULL);
CREATE TABLE source_facts (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    dominant_colour TEXT, blurhash TEXT NOT NULL, thumbhash TEXT NOT NULL, phash INTEGER, damage TEXT,
    band0 INTEGER AS ((phash >> 0) & 65535) VIRTUAL,
    band1 INTEGER AS ((phash >> 16) & 65535) VIRTUAL,
    band2 INTEGER AS ((phash >> 32) & 65535) VIRTUAL,
    band3 INTEGER AS ((phash >> 48) & 65535) VIRTUAL
);
INSERT INTO source_facts VALUES(1,'aa','#102030','LEHV6nWB2yk8pyo0adR*.7kCMdnj','1QcSHQRnh493V4dIh4eXh1h4kJUI',77,NULL);
CREATE TABLE variants (
    identity TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    spec TEXT NOT NULL,
    coder TEXT NOT NULL,
    blob TEXT NOT NULL,
    size INTEGER NOT NULL,
    format TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO variants VALUES('i','aa','s','c','bb',5,'webp',2,1,1);
CREATE TABLE cache_entries (
    key TEXT NOT NULL,
    variant TEXT NOT NULL,
    blob TEXT NOT NULL,
    format TEXT NOT NULL,
    PRIMARY KEY (key, variant)
) WITHOUT ROWID;
INSERT INTO cache_entries VALUES('https://a.example/1.jpg','original','aa','jpeg');
INSERT INTO cache_entries VALUES('https://a.example/1.jpg','thumb','bb','webp');
CREATE TABLE removed_links (
    key TEXT NOT NULL,
    variant TEXT NOT NULL,
    format TEXT NOT NULL,
    removal INTEGER NOT NULL DEFAULT (random()),
    PRIMARY KEY (key, variant, format)
) WITHOUT ROWID;
CREATE TABLE pins (
    key TEXT PRIMARY KEY,
    pinned_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE pin_urls (
    url TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (url, key)
) WITHOUT ROWID;
CREATE TABLE key_rules (
    rule TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (rule, key)
) WITHOUT ROWID;
CREATE TABLE lost_files (
    key TEXT NOT NULL,
    -- The variant's name; empty for the source.
    variant TEXT NOT NULL,
    blob TEXT NOT NULL,
    found_at INTEGER NOT NULL,
    -- The job that it was queued again in.
    job INTEGER,
    PRIMARY KEY (key, variant)
) WITHOUT ROWID;
CREATE TABLE quarantined (
    name TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE reservations (
    worker INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL
);
CREATE TABLE cache_properties (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE cache_totals (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    blobs INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    hits INTEGER NOT NULL DEFAULT 0,
    misses INTEGER NOT NULL DEFAULT 0,
    revalidated_bytes INTEGER NOT NULL DEFAULT 0,
    deduped_bytes INTEGER NOT NULL DEFAULT 0,
    evicted_blobs INTEGER NOT NULL DEFAULT 0,
    evicted_bytes INTEGER NOT NULL DEFAULT 0,
    failed_syncs INTEGER NOT NULL DEFAULT 0,
    from_memory INTEGER NOT NULL DEFAULT 0,
    from_loaders INTEGER NOT NULL DEFAULT 0,
    from_files INTEGER NOT NULL DEFAULT 0
);
INSERT INTO cache_totals VALUES(1,2,15,0,0,0,0,0,0,0,0,0,0);
CREATE TABLE hosts (
    host TEXT PRIMARY KEY,
    not_before INTEGER NOT NULL,
    set_at INTEGER,
    reason TEXT,
    width REAL,
    circuit_opens INTEGER NOT NULL DEFAULT 0,
    failing_since INTEGER,
    failed_at INTEGER,
    gives_up_at INTEGER,
    failure_class TEXT,
    failure_message TEXT,
    answered INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO hosts VALUES('a.example',7,6,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1);
CREATE TABLE host_failures (
    host TEXT NOT NULL,
    class TEXT NOT NULL,
    count INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (host, class)
) WITHOUT ROWID;
CREATE TABLE host_load (
    worker INTEGER NOT NULL,
    host TEXT NOT NULL,
    running INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    rate REAL NOT NULL,
    reason TEXT,
    until INTEGER,
    share INTEGER,
    PRIMARY KEY (worker, host)
) WITHOUT ROWID;
CREATE TABLE limits (
    host TEXT PRIMARY KEY NOT NULL,
    concurrency INTEGER CONSTRAINT "concurrency is a whole number from 1 to 1000, and of the row '*' only"
        CHECK (concurrency IS NULL OR (typeof(concurrency) = 'integer' AND concurrency BETWEEN 1 AND 1000
            AND host = '*')),
    per_host INTEGER CONSTRAINT "per_host is a whole number from 1 to 1000"
        CHECK (per_host IS NULL OR (typeof(per_host) = 'integer' AND per_host BETWEEN 1 AND 1000)),
    rate REAL CONSTRAINT "rate is a number of requests a second, from 0.0001 to 100000"
        CHECK (rate IS NULL OR (typeof(rate) = 'real' AND rate BETWEEN 0.0001 AND 100000)),
    burst INTEGER CONSTRAINT "burst is a whole number from 1 to 10000"
        CHECK (burst IS NULL OR (typeof(burst) = 'integer' AND burst BETWEEN 1 AND 10000)),
    silence_timeout INTEGER CONSTRAINT "silence_timeout is a whole number of milliseconds from 1 to 86400000, and of the row '*' only"
        CHECK (silence_timeout IS NULL OR (typeof(silence_timeout) = 'integer' AND silence_timeout BETWEEN 1 AND 86400000
            AND host = '*')),
            connect_timeout INTEGER CONSTRAINT "connect_timeout is a whole number of milliseconds from 1 to 86400000, and of the row '*' only"
        CHECK (connect_timeout IS NULL OR (typeof(connect_timeout) = 'integer' AND connect_timeout BETWEEN 1 AND 86400000
            AND host = '*')),
            total_timeout INTEGER CONSTRAINT "total_timeout is a whole number of milliseconds from 1 to 86400000, and of the row '*' only"
        CHECK (total_timeout IS NULL OR (typeof(total_timeout) = 'integer' AND total_timeout BETWEEN 1 AND 86400000
            AND host = '*')),
            max_tries INTEGER CONSTRAINT "max_tries is a whole number from 1 to 1000, and of the row '*' only"
        CHECK (max_tries IS NULL OR (typeof(max_tries) = 'integer' AND max_tries BETWEEN 1 AND 1000
            AND host = '*')),
            retry_delay INTEGER CONSTRAINT "retry_delay is a whole number of milliseconds from 0 to 3600000, and of the row '*' only"
        CHECK (retry_delay IS NULL OR (typeof(retry_delay) = 'integer' AND retry_delay BETWEEN 0 AND 3600000
            AND host = '*')),
            cache_max_age INTEGER CONSTRAINT "cache_max_age is a whole number of milliseconds from -1 to 31557600000000, and of the row '*' only"
        CHECK (cache_max_age IS NULL OR (typeof(cache_max_age) = 'integer' AND cache_max_age BETWEEN -1 AND 31557600000000
            AND host = '*'))
) WITHOUT ROWID;
INSERT INTO limits VALUES('a.example',NULL,3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE blacklist_entries (
    url TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    class TEXT NOT NULL,
    http_status INTEGER,
    message TEXT,
    count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    setting TEXT
) WITHOUT ROWID;
CREATE TABLE transfer_progress (
    worker INTEGER NOT NULL,
    item INTEGER NOT NULL,
    received INTEGER NOT NULL,
    expected INTEGER,
    updated_at INTEGER NOT NULL,
    bytes_from TEXT NOT NULL DEFAULT 'network',
    PRIMARY KEY (worker, item)
) WITHOUT ROWID;
CREATE TABLE held_items (
    worker INTEGER NOT NULL,
    item INTEGER NOT NULL,
    host TEXT NOT NULL,
    PRIMARY KEY (worker, item)
) WITHOUT ROWID;
CREATE TABLE event_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT
        CONSTRAINT "the id of an event is left to the database" CHECK (id BETWEEN 1 AND 4503599627370496),
    at INTEGER NOT NULL,
    detail TEXT NOT NULL
);
CREATE TABLE schedules (
    name TEXT PRIMARY KEY NOT NULL CONSTRAINT "the name of a schedule has 1 to 100 characters"
        CHECK (typeof(name) = 'text' AND length(name) BETWEEN 1 AND 100),
    manifest TEXT NOT NULL CONSTRAINT "manifest is a text of at most 16 MiB"
        CHECK (typeof(manifest) = 'text' AND length(manifest) <= 16777216),
    origin TEXT,
    cron TEXT NOT NULL,
    time_zone TEXT NOT NULL DEFAULT 'UTC',
    jitter INTEGER NOT NULL DEFAULT 0 CONSTRAINT "jitter is a whole number of milliseconds, from 0 to a day"
        CHECK (typeof(jitter) = 'integer' AND jitter BETWEEN 0 AND 86400000),
    missed TEXT NOT NULL DEFAULT 'once' CONSTRAINT "missed is 'once' or 'skip'"
        CHECK (missed = 'once' OR missed = 'skip'),
    paused INTEGER NOT NULL DEFAULT 0 CONSTRAINT "paused is 0 or 1" CHECK (paused IS 0 OR paused IS 1),
    next_due INTEGER,
    starts_at INTEGER,
    error TEXT
) WITHOUT ROWID;
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
CREATE TABLE recipes (
    name TEXT PRIMARY KEY NOT NULL
        CONSTRAINT "the name of a recipe has 1 to 100 letters, digits, dots, hyphens and underscores"
        CHECK (typeof(name) = 'text' AND length(name) BETWEEN 1 AND 100 AND name NOT GLOB '*[^A-Za-z0-9._-]*'),
    variants TEXT NOT NULL
        CONSTRAINT "the variants of a recipe are written in short, as in 'thumb=320x240,webp card=640x,webp', and name no recipe"
        CHECK (typeof(variants) = 'text' AND length(variants) BETWEEN 1 AND 65536
            AND substr(ltrim(variants, ' ' || char(9) || char(10) || char(13)), 1, 1) NOT IN ('{', '[') AND instr((' ' || replace(replace(replace(replace(variants, char(9), ' '), char(10), ' '), char(13), ' '), ';', ' ') || ' '), ' recipe:') = 0)
) WITHOUT ROWID;
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
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('jobs',1);
INSERT INTO sqlite_sequence VALUES('leases',1);
INSERT INTO sqlite_sequence VALUES('workers',0);
INSERT INTO sqlite_sequence VALUES('event_log',0);
CREATE INDEX jobs_open ON jobs (priority) WHERE state IN ('queued', 'running');
CREATE UNIQUE INDEX jobs_dedupe ON jobs (dedupe_key)
    WHERE dedupe_key IS NOT NULL AND state IN ('queued', 'running', 'paused');
CREATE INDEX jobs_closed ON jobs (id) WHERE state IN ('cancelled', 'failed') AND queued + active + delayed > 0;
CREATE INDEX items_by_job ON items (job);
CREATE INDEX items_queued ON items (job) WHERE state = 'queued' AND priority IS NULL;
CREATE INDEX items_own_priority ON items (priority, job) WHERE state = 'queued' AND priority IS NOT NULL;
CREATE INDEX items_delayed ON items (run_at) WHERE state = 'delayed';
CREATE INDEX items_leased ON items (lease) WHERE state = 'active';
CREATE INDEX items_waiting_for ON items (waits_for) WHERE state = 'delayed' AND waits_for IS NOT NULL;
CREATE INDEX items_suspect ON items (deaths, id) WHERE state = 'queued' AND deaths > 1;
CREATE INDEX items_delayed_by_job ON items (job) WHERE state = 'delayed';
CREATE INDEX blobs_by_use ON blobs (used_at, hash, is_source, size);
CREATE INDEX blobs_dying ON blobs (dying) WHERE dying <> 0;
CREATE INDEX blobs_by_lifetime ON blobs (hash) WHERE lifetime IS NOT NULL;
CREATE INDEX sources_by_hash ON sources (hash);
CREATE INDEX sources_by_use ON sources (used_at);
CREATE INDEX source_facts_band0 ON source_facts (band0, phash) WHERE phash IS NOT NULL;
CREATE INDEX source_facts_band1 ON source_facts (band1, phash) WHERE phash IS NOT NULL;
CREATE INDEX source_facts_band2 ON source_facts (band2, phash) WHERE phash IS NOT NULL;
CREATE INDEX source_facts_band3 ON source_facts (band3, phash) WHERE phash IS NOT NULL;
CREATE INDEX variants_by_source ON variants (source);
CREATE INDEX variants_by_blob ON variants (blob);
CREATE INDEX entries_by_blob ON cache_entries (blob);
CREATE INDEX pin_urls_by_key ON pin_urls (key);
CREATE INDEX key_rules_by_key ON key_rules (key);
CREATE VIEW unnoted_urls AS SELECT 1 AS note WHERE FALSE;
CREATE VIEW uncounted_moves AS SELECT id, job, state AS was_state, cached AS was_cached,
    blacklisted AS was_blacklisted, state, cached, blacklisted, bytes, class FROM items WHERE FALSE;
CREATE VIEW progress AS SELECT
    id AS job, name, state, priority, total,
    done + cached + failed + blacklisted + cancelled AS ended,
    CASE total WHEN 0 THEN 100.0 ELSE
        round(100.0 * (done + cached + failed + blacklisted + cancelled) / total, 1) END AS percent,
    queued, active, delayed, done, cached, failed, blacklisted, cancelled, bytes,
    done + cached + failed + blacklisted AS finished_count,
    failed + blacklisted AS skipped_count, not_new,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at, strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') AS finished_at, error
    FROM jobs;
CREATE VIEW results AS SELECT
    items.job AS job, items.id AS item, items.url AS url, items.state AS state, items.cached AS cached,
    renditions.name AS variant, renditions.format AS format, renditions.width AS width,
    renditions.height AS height, renditions.size AS size, renditions.blob AS blob,
    CASE WHEN blobs.dying = 0
        THEN 'blobs/sha256/' || substr(renditions.blob, 1, 2) || '/' || renditions.blob END AS path,
    items.class AS class, items.http_status AS http_status, items.message AS message,
    strftime('%Y-%m-%dT%H:%M:%fZ', items.finished_at / 1000.0, 'unixepoch') AS finished_at,
    source_facts.dominant_colour AS dominant_colour, source_facts.blurhash AS blurhash,
    source_facts.thumbhash AS thumbhash,
    CASE WHEN source_facts.phash IS NOT NULL THEN printf('%016x', source_facts.phash) END AS phash,
    sources.format AS source_format, sources.width AS source_width, sources.height AS source_height,
    sources.frames AS frames, sources.has_alpha AS has_alpha,
    source_facts.damage AS damage,
    CASE WHEN instr(CASE WHEN instr(items.url, '://') > 0 THEN substr(replace(replace(substr(items.url, instr(items.url, '://') + 3), '?', '/'), '#', '/'), nullif(instr(replace(replace(substr(items.url, instr(items.url, '://') + 3), '?', '/'), '#', '/'), '/'), 0)) ELSE items.url END, '@2x.') > 0 OR instr(CASE WHEN instr(items.url, '://') > 0 THEN substr(replace(replace(substr(items.url, instr(items.url, '://') + 3), '?', '/'), '#', '/'), nullif(instr(replace(replace(substr(items.url, instr(items.url, '://') + 3), '?', '/'), '#', '/'), '/'), 0)) ELSE items.url END, '%402x.') > 0 THEN 2
                WHEN instr(CASE WHEN instr(items.url, '://') > 0 THEN substr(replace(replace(substr(items.url, instr(items.url, '://') + 3), '?', '/'), '#', '/'), nullif(instr(replace(replace(substr(items.url, instr(items.url, '://') + 3), '?', '/'), '#', '/'), '/'), 0)) ELSE items.url END, '@3x.') > 0 OR instr(CASE WHEN instr(items.url, '://') > 0 THEN substr(replace(replace(substr(items.url, instr(items.url, '://') + 3), '?', '/'), '#', '/'), nullif(instr(replace(replace(substr(items.url, instr(items.url, '://') + 3), '?', '/'), '#', '/'), '/'), 0)) ELSE items.url END, '%403x.') > 0 THEN 3 ELSE 1 END AS scale,
    CASE WHEN json_valid(items.meta) THEN json(items.meta) END AS meta,
    CASE WHEN items.state = 'done' AND items.fallbacks IS NOT NULL THEN CASE WHEN coalesce(items.fallback, 0) < 1 THEN items.url WHEN json_valid(items.fallbacks)
    THEN coalesce(json_extract(items.fallbacks, '$[' || (items.fallback - 1) || ']'), items.url)
    ELSE items.url END END AS served_url,
    CASE WHEN items.state = 'done'
    THEN coalesce(items.bytes_from, CASE items.cached WHEN 0 THEN 'network' ELSE 'disk' END) END AS bytes_from
    FROM items
    LEFT JOIN renditions ON renditions.item = items.id
    LEFT JOIN blobs ON blobs.hash = renditions.blob
    LEFT JOIN source_facts ON source_facts.hash = items.source
    LEFT JOIN sources ON sources.key = (SELECT same.key FROM sources AS same WHERE same.hash = items.source LIMIT 1)
    WHERE items.state IN ('done', 'failed', 'cancelled');
CREATE VIEW failures AS SELECT
    job, id AS item, url, class, http_status, message, attempts, blacklisted,
    strftime('%Y-%m-%dT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch') AS failed_at
    FROM items WHERE state = 'failed';
CREATE VIEW blacklist AS SELECT
    url, host, class, http_status, message, count,
    strftime('%Y-%m-%dT%H:%M:%fZ', first_at / 1000.0, 'unixepoch') AS first_at, strftime('%Y-%m-%dT%H:%M:%fZ', last_at / 1000.0, 'unixepoch') AS last_at, strftime('%Y-%m-%dT%H:%M:%fZ', (expires_at + coalesce((SELECT CAST(json_extract(value, '$.shift') AS INTEGER) FROM cache_properties WHERE name = 'clock' AND json_valid(value)), 0)) / 1000.0, 'unixepoch') AS expires_at
    FROM blacklist_entries WHERE expires_at > (SELECT CASE WHEN shift IS NULL OR wall IS NULL THEN CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)
    WHEN CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) < wall OR CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) - wall > 34560000000 THEN wall - shift
    ELSE CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) - shift END
    FROM (SELECT CAST(json_extract(clock, '$.wall') AS INTEGER) AS wall,
            CAST(json_extract(clock, '$.shift') AS INTEGER) AS shift
        FROM (SELECT (SELECT CASE WHEN json_valid(value) THEN value END FROM cache_properties
            WHERE name = 'clock') AS clock) AS recorded) AS shifted);
CREATE VIEW entries AS SELECT
    key, key AS url, variant, format, blob, 'blobs/sha256/' || substr(blob, 1, 2) || '/' || blob AS path
    FROM cache_entries;
CREATE VIEW transfers AS SELECT
    items.job AS job, items.id AS item, items.url AS url, received, expected,
    CASE WHEN expected > 0 THEN round(100.0 * received / expected, 1) END AS percent,
    strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1000.0, 'unixepoch') AS updated_at, transfer_progress.bytes_from AS bytes_from
    FROM transfer_progress JOIN items ON items.id = transfer_progress.item WHERE items.state = 'active';
CREATE VIEW waiting AS SELECT
    job, id AS item, url, waits_for AS host, message AS reason, class, attempts, strftime('%Y-%m-%dT%H:%M:%fZ', (run_at + coalesce((SELECT CAST(json_extract(value, '$.shift') AS INTEGER) FROM cache_properties WHERE name = 'clock' AND json_valid(value)), 0)) / 1000.0, 'unixepoch') AS until
    FROM items WHERE state = 'delayed'
UNION ALL SELECT
    items.job, items.id, items.url, held_items.host,
    coalesce(host_load.reason, coalesce((SELECT whole.reason FROM host_load AS whole WHERE whole.worker = held_items.worker
    AND whole.host = '*'), 'All download slots are in use (--concurrency).')), items.class, items.attempts,
    strftime('%Y-%m-%dT%H:%M:%fZ', (host_load.until + coalesce((SELECT CAST(json_extract(value, '$.shift') AS INTEGER) FROM cache_properties WHERE name = 'clock' AND json_valid(value)), 0)) / 1000.0, 'unixepoch')
    FROM held_items JOIN items ON items.id = held_items.item AND items.state = 'active'
    LEFT JOIN host_load ON host_load.worker = held_items.worker AND host_load.host = held_items.host
UNION ALL SELECT
    items.job, items.id, items.url, 'a turn apart from other items', 'It runs apart from other items, since workers died while processing it.', items.class,
    items.attempts, NULL
    FROM items JOIN jobs ON jobs.id = items.job AND (jobs.state = 'queued' OR jobs.state = 'running')
    WHERE items.state = 'queued' AND items.deaths > 1
UNION ALL SELECT
    items.job, items.id, items.url, 'the disk of the cache', (SELECT max(reason) FROM host_load WHERE host = 'the disk of the cache'), items.class, items.attempts,
    NULL
    FROM jobs JOIN items ON items.job = jobs.id AND items.state = 'queued' AND items.deaths <= 1
    WHERE (jobs.state = 'queued' OR jobs.state = 'running') AND EXISTS (SELECT 1 FROM workers JOIN host_load ON worker = workers.id AND host_load.host = 'the disk of the cache')
    AND NOT EXISTS (SELECT 1 FROM workers WHERE NOT EXISTS
        (SELECT 1 FROM host_load WHERE worker = workers.id AND host_load.host = 'the disk of the cache'))
;
CREATE VIEW near_duplicates AS
    WITH flips (bit) AS (VALUES (0), (1), (2), (4), (8), (16), (32), (64), (128), (256), (512), (1024), (2048), (4096), (8192), (16384), (32768))
    SELECT one.key AS url, other.key AS near_url, (((((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) + (((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) >> 4)) & 1085102592571150095) % 255 + (((a.phash | b.phash) - (a.phash & b.phash)) < 0)) AS distance
    FROM sources AS one CROSS JOIN source_facts AS a ON a.hash = one.hash
    CROSS JOIN flips
    CROSS JOIN source_facts AS b ON b.band0 = (a.band0 | bit) - (a.band0 & bit)
    CROSS JOIN sources AS other ON other.hash = b.hash
    WHERE a.phash IS NOT NULL AND b.phash IS NOT NULL AND (((((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) + (((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) >> 4)) & 1085102592571150095) % 255 + (((a.phash | b.phash) - (a.phash & b.phash)) < 0)) <= 6 AND other.key <> one.key
    UNION ALL
    SELECT one.key AS url, other.key AS near_url, (((((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) + (((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) >> 4)) & 1085102592571150095) % 255 + (((a.phash | b.phash) - (a.phash & b.phash)) < 0)) AS distance
    FROM sources AS one CROSS JOIN source_facts AS a ON a.hash = one.hash
    CROSS JOIN flips
    CROSS JOIN source_facts AS b ON b.band1 = (a.band1 | bit) - (a.band1 & bit)
    CROSS JOIN sources AS other ON other.hash = b.hash
    WHERE a.phash IS NOT NULL AND b.phash IS NOT NULL AND (((((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) + (((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) >> 4)) & 1085102592571150095) % 255 + (((a.phash | b.phash) - (a.phash & b.phash)) < 0)) <= 6 AND other.key <> one.key AND ((((a.phash | b.phash) - (a.phash & b.phash)) >> 0) & 65535) & (((((a.phash | b.phash) - (a.phash & b.phash)) >> 0) & 65535) - 1) <> 0
    UNION ALL
    SELECT one.key AS url, other.key AS near_url, (((((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) + (((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) >> 4)) & 1085102592571150095) % 255 + (((a.phash | b.phash) - (a.phash & b.phash)) < 0)) AS distance
    FROM sources AS one CROSS JOIN source_facts AS a ON a.hash = one.hash
    CROSS JOIN flips
    CROSS JOIN source_facts AS b ON b.band2 = (a.band2 | bit) - (a.band2 & bit)
    CROSS JOIN sources AS other ON other.hash = b.hash
    WHERE a.phash IS NOT NULL AND b.phash IS NOT NULL AND (((((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) + (((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) >> 4)) & 1085102592571150095) % 255 + (((a.phash | b.phash) - (a.phash & b.phash)) < 0)) <= 6 AND other.key <> one.key AND ((((a.phash | b.phash) - (a.phash & b.phash)) >> 0) & 65535) & (((((a.phash | b.phash) - (a.phash & b.phash)) >> 0) & 65535) - 1) <> 0 AND ((((a.phash | b.phash) - (a.phash & b.phash)) >> 16) & 65535) & (((((a.phash | b.phash) - (a.phash & b.phash)) >> 16) & 65535) - 1) <> 0
    UNION ALL
    SELECT one.key AS url, other.key AS near_url, (((((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) + (((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) >> 4)) & 1085102592571150095) % 255 + (((a.phash | b.phash) - (a.phash & b.phash)) < 0)) AS distance
    FROM sources AS one CROSS JOIN source_facts AS a ON a.hash = one.hash
    CROSS JOIN flips
    CROSS JOIN source_facts AS b ON b.band3 = (a.band3 | bit) - (a.band3 & bit)
    CROSS JOIN sources AS other ON other.hash = b.hash
    WHERE a.phash IS NOT NULL AND b.phash IS NOT NULL AND (((((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) + (((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) & 3689348814741910323) + ((((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) - (((((a.phash | b.phash) - (a.phash & b.phash)) & 9223372036854775807) >> 1) & 6148914691236517205)) >> 2) & 3689348814741910323)) >> 4)) & 1085102592571150095) % 255 + (((a.phash | b.phash) - (a.phash & b.phash)) < 0)) <= 6 AND other.key <> one.key AND ((((a.phash | b.phash) - (a.phash & b.phash)) >> 0) & 65535) & (((((a.phash | b.phash) - (a.phash & b.phash)) >> 0) & 65535) - 1) <> 0 AND ((((a.phash | b.phash) - (a.phash & b.phash)) >> 16) & 65535) & (((((a.phash | b.phash) - (a.phash & b.phash)) >> 16) & 65535) - 1) <> 0 AND ((((a.phash | b.phash) - (a.phash & b.phash)) >> 32) & 65535) & (((((a.phash | b.phash) - (a.phash & b.phash)) >> 32) & 65535) - 1) <> 0;
CREATE VIEW events AS SELECT
    event_log.id * 1000 + part.key AS id, strftime('%Y-%m-%dT%H:%M:%fZ', event_log.at / 1000.0, 'unixepoch') AS at,
    CASE WHEN json_extract(CASE WHEN part.type = 'array' THEN part.value ELSE '[]' END, '$[0]') IS NULL THEN 'job' ELSE 'item' END AS event,
    CAST(json_extract(CASE WHEN part.type = 'array' THEN part.value ELSE '[]' END, '$[1]') AS INTEGER) AS job, CAST(json_extract(CASE WHEN part.type = 'array' THEN part.value ELSE '[]' END, '$[0]') AS INTEGER) AS item, items.url AS url,
    json_extract(CASE WHEN part.type = 'array' THEN part.value ELSE '[]' END, '$[2]') AS state, json_extract(CASE WHEN part.type = 'array' THEN part.value ELSE '[]' END, '$[3]') AS class,
    CASE WHEN json_valid(items.meta) THEN json(items.meta) END AS meta
    FROM event_log CROSS JOIN json_each(CASE WHEN json_valid(event_log.detail) THEN event_log.detail ELSE '[]' END) AS part
    LEFT JOIN items ON items.id = CAST(json_extract(CASE WHEN part.type = 'array' THEN part.value ELSE '[]' END, '$[0]') AS INTEGER);
CREATE INDEX schedule_runs_open ON schedule_runs (taken_at) WHERE outcome IS NULL;
CREATE INDEX notices_due ON notices (due_at) WHERE state = 'waiting';
CREATE TRIGGER blobs_count_insert AFTER INSERT ON blobs BEGIN
    UPDATE cache_totals SET blobs = blobs + 1, bytes = bytes + NEW.size WHERE id = 1;
END;
CREATE TRIGGER blobs_count_delete AFTER DELETE ON blobs BEGIN
    UPDATE cache_totals SET blobs = blobs - 1, bytes = bytes - OLD.size WHERE id = 1;
END;
CREATE TRIGGER blobs_count_size AFTER UPDATE OF size ON blobs BEGIN
    UPDATE cache_totals SET bytes = bytes + NEW.size - OLD.size WHERE id = 1;
END;
CREATE TRIGGER workers_delete_held AFTER DELETE ON workers BEGIN
    DELETE FROM held_items WHERE worker = OLD.id;
END;
CREATE TRIGGER jobs_check_insert BEFORE INSERT ON jobs BEGIN
    SELECT RAISE(ABORT, 'priority must be a whole number from -100 to 100') WHERE typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN -100 AND 100;
SELECT RAISE(ABORT, 'execution_order must be ''fifo'' or ''lifo'' (or NULL for the worker''s own)') WHERE NEW.execution_order IS NOT NULL AND NEW.execution_order NOT IN ('fifo', 'lifo');
SELECT RAISE(ABORT, 'variants must be text, as in ''thumb=320x240,cover,webp,q80''') WHERE NEW.variants IS NOT NULL AND typeof(NEW.variants) <> 'text';
SELECT RAISE(ABORT, 'options must be text, as in ''retry-failed, discard-original''') WHERE NEW.options IS NOT NULL AND typeof(NEW.options) <> 'text';
SELECT RAISE(ABORT, 'headers must be a JSON object of strings, as in ''{"Referer":"https://example.com/"}''') WHERE NEW.headers IS NOT NULL AND CASE WHEN json_valid(NEW.headers)
    THEN json_type(NEW.headers) <> 'object' OR EXISTS (SELECT 1 FROM json_each(NEW.headers) WHERE type <> 'text') ELSE TRUE END;
SELECT RAISE(ABORT, 'notify must be an http or https URL, or ''command'' for the command of worker run --notify-command') WHERE NEW.notify IS NOT NULL AND (typeof(NEW.notify) <> 'text' OR length(NEW.notify) > 2048
    OR NOT (NEW.notify = 'command' OR NEW.notify GLOB 'http://?*' OR NEW.notify GLOB 'https://?*'));
    SELECT RAISE(ABORT, 'urls must be a JSON array of strings, as in json_array(''https://example.com/a.jpg'')') WHERE NEW.urls IS NOT NULL AND CASE WHEN json_valid(NEW.urls)
    THEN json_type(NEW.urls) <> 'array' OR FALSE ELSE TRUE END;
    SELECT RAISE(ABORT, 'a new job is ''queued'' or ''paused''') WHERE NEW.state IS NULL OR NEW.state NOT IN ('queued', 'paused');
    SELECT RAISE(ABORT, 'the counters of a job are kept by the database; leave them out of the INSERT') WHERE NEW.total <> 0 OR NEW.queued <> 0 OR NEW.active <> 0 OR NEW.delayed <> 0 OR NEW.done <> 0
OR NEW.cached <> 0 OR NEW.failed <> 0 OR NEW.blacklisted <> 0 OR NEW.cancelled <> 0 OR NEW.bytes <> 0
OR NEW.not_new <> 0 OR NEW.revision <> 0;
END
;
CREATE TRIGGER jobs_check_update BEFORE UPDATE OF priority, execution_order, variants, options, headers, notify ON jobs
BEGIN
    SELECT RAISE(ABORT, 'priority must be a whole number from -100 to 100') WHERE typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN -100 AND 100;
SELECT RAISE(ABORT, 'execution_order must be ''fifo'' or ''lifo'' (or NULL for the worker''s own)') WHERE NEW.execution_order IS NOT NULL AND NEW.execution_order NOT IN ('fifo', 'lifo');
SELECT RAISE(ABORT, 'variants must be text, as in ''thumb=320x240,cover,webp,q80''') WHERE NEW.variants IS NOT NULL AND typeof(NEW.variants) <> 'text';
SELECT RAISE(ABORT, 'options must be text, as in ''retry-failed, discard-original''') WHERE NEW.options IS NOT NULL AND typeof(NEW.options) <> 'text';
SELECT RAISE(ABORT, 'headers must be a JSON object of strings, as in ''{"Referer":"https://example.com/"}''') WHERE NEW.headers IS NOT NULL AND CASE WHEN json_valid(NEW.headers)
    THEN json_type(NEW.headers) <> 'object' OR EXISTS (SELECT 1 FROM json_each(NEW.headers) WHERE type <> 'text') ELSE TRUE END;
SELECT RAISE(ABORT, 'notify must be an http or https URL, or ''command'' for the command of worker run --notify-command') WHERE NEW.notify IS NOT NULL AND (typeof(NEW.notify) <> 'text' OR length(NEW.notify) > 2048
    OR NOT (NEW.notify = 'command' OR NEW.notify GLOB 'http://?*' OR NEW.notify GLOB 'https://?*'));
END
;
CREATE TRIGGER jobs_urls_once BEFORE UPDATE OF urls ON jobs
WHEN NEW.urls IS NOT NULL AND (OLD.urls IS NULL OR NEW.urls <> '[]') BEGIN
    SELECT RAISE(ABORT, 'urls is read when the job is inserted; add rows to items instead');
END;
CREATE TRIGGER jobs_state_moves BEFORE UPDATE OF state ON jobs
WHEN OLD.state <> NEW.state AND NOT CASE OLD.state WHEN 'queued' THEN NEW.state = 'running' OR NEW.state = 'paused' OR NEW.state = 'finished' OR NEW.state = 'cancelled' OR NEW.state = 'failed' WHEN 'running' THEN NEW.state = 'queued' OR NEW.state = 'paused' OR NEW.state = 'finished' OR NEW.state = 'cancelled' OR NEW.state = 'failed' WHEN 'paused' THEN NEW.state = 'queued' OR NEW.state = 'finished' OR NEW.state = 'cancelled' OR NEW.state = 'failed' WHEN 'finished' THEN NEW.state = 'queued' WHEN 'cancelled' THEN NEW.state = 'queued' WHEN 'failed' THEN NEW.state = 'queued' ELSE FALSE END BEGIN
    SELECT RAISE(ABORT, 'a job can''t move between these states; docs/reference/sql.md shows the moves it can make');
END;
CREATE TRIGGER jobs_priority_options AFTER INSERT ON jobs WHEN NEW.priority = 0 AND NEW.options IS NOT NULL BEGIN
    UPDATE jobs SET priority = CASE
        WHEN ',' || replace(replace(replace(replace(options, char(9), ','), char(10), ','), char(13), ','), char(32), ',') || ',' LIKE '%,high-priority,%' THEN 50
        WHEN ',' || replace(replace(replace(replace(options, char(9), ','), char(10), ','), char(13), ','), char(32), ',') || ',' LIKE '%,low-priority,%' THEN -50
        ELSE 0 END
    WHERE id = NEW.id;
END;
CREATE TRIGGER jobs_delete AFTER DELETE ON jobs BEGIN
    DELETE FROM items WHERE job = OLD.id;
END;
CREATE TRIGGER jobs_end AFTER UPDATE OF finished_at ON jobs BEGIN
    DELETE FROM job_ends WHERE job = NEW.id;
    INSERT INTO job_ends SELECT NEW.id, (SELECT CASE WHEN shift IS NULL OR wall IS NULL THEN NEW.finished_at
    WHEN NEW.finished_at < wall OR NEW.finished_at - wall > 34560000000 THEN wall - shift
    ELSE NEW.finished_at - shift END
    FROM (SELECT CAST(json_extract(clock, '$.wall') AS INTEGER) AS wall,
            CAST(json_extract(clock, '$.shift') AS INTEGER) AS shift
        FROM (SELECT (SELECT CASE WHEN json_valid(value) THEN value END FROM cache_properties
            WHERE name = 'clock') AS clock) AS recorded) AS shifted) WHERE NEW.finished_at IS NOT NULL;
END;
CREATE TRIGGER jobs_forget_end AFTER DELETE ON jobs BEGIN
    DELETE FROM job_ends WHERE job = OLD.id;
    DELETE FROM recounts WHERE job = OLD.id;
END;
CREATE TRIGGER jobs_note_replaced BEFORE INSERT ON jobs BEGIN
    SELECT RAISE(ABORT, 'the id of a job is a positive number of at most 2^51; leave it out of the INSERT')
        WHERE NEW.id <> -1 AND (NEW.id < 1 OR NEW.id > 2251799813685248);
    DELETE FROM replacing;
    INSERT OR IGNORE INTO replacing SELECT id FROM jobs WHERE id = NEW.id;
    INSERT OR IGNORE INTO replacing SELECT id FROM jobs
        WHERE dedupe_key = NEW.dedupe_key AND (state = 'queued' OR state = 'running' OR state = 'paused');
END;
CREATE TRIGGER jobs_refuse_replacing AFTER INSERT ON jobs BEGIN
    SELECT RAISE(ABORT, 'a job can''t be replaced, since its items would be lost; leave OR REPLACE out, or delete the job first')
        WHERE EXISTS (SELECT 1 FROM replacing WHERE job = NEW.id OR job NOT IN (SELECT id FROM jobs));
    SELECT RAISE(ABORT, 'the id of a job is a positive number of at most 2^51; leave it out of the INSERT')
        WHERE NEW.id < 1;
    SELECT RAISE(ABORT, 'this id belongs to a job whose list is being added; leave the id out of the INSERT')
        WHERE EXISTS (SELECT 1 FROM job_additions WHERE job = NEW.id);
    DELETE FROM replacing;
END;
CREATE TRIGGER jobs_keep_id BEFORE UPDATE OF id, rowid, oid, _rowid_ ON jobs WHEN OLD.id <> NEW.id BEGIN
    SELECT RAISE(ABORT, 'the id of a job stays as it is');
END;
CREATE TRIGGER jobs_keep_sums
BEFORE UPDATE OF state, total, queued, active, delayed, done, cached, failed, blacklisted, cancelled ON jobs
WHEN NOT (NEW.total = NEW.queued + NEW.active + NEW.delayed + NEW.done + NEW.cached + NEW.failed + NEW.blacklisted + NEW.cancelled AND typeof(NEW.total) = 'integer' AND typeof(NEW.queued) = 'integer' AND typeof(NEW.active) = 'integer' AND typeof(NEW.delayed) = 'integer' AND typeof(NEW.done) = 'integer' AND typeof(NEW.cached) = 'integer' AND typeof(NEW.failed) = 'integer' AND typeof(NEW.blacklisted) = 'integer' AND typeof(NEW.cancelled) = 'integer') OR (NEW.state = 'finished' AND NEW.queued + NEW.active + NEW.delayed <> 0) BEGIN
    SELECT RAISE(ABORT, 'a finished job has nothing left to do; cancel the job, or its items')
        WHERE NEW.state = 'finished' AND NEW.queued + NEW.active + NEW.delayed <> 0;
    SELECT RAISE(ABORT, 'total must be the sum of a job''s other counters; change its items instead');
END;
CREATE TRIGGER jobs_keep_counters
BEFORE UPDATE OF total, queued, active, delayed, done, cached, failed, blacklisted, cancelled, bytes, not_new, revision
ON jobs WHEN NEW.revision IS NOT OLD.revision + 1 AND (NEW.total IS NOT OLD.total OR NEW.queued IS NOT OLD.queued OR NEW.active IS NOT OLD.active OR NEW.delayed IS NOT OLD.delayed OR NEW.done IS NOT OLD.done OR NEW.cached IS NOT OLD.cached OR NEW.failed IS NOT OLD.failed OR NEW.blacklisted IS NOT OLD.blacklisted OR NEW.cancelled IS NOT OLD.cancelled OR NEW.bytes IS NOT OLD.bytes OR NEW.not_new IS NOT OLD.not_new OR NEW.revision IS NOT OLD.revision) BEGIN
    SELECT RAISE(ABORT, 'the counters of a job are kept by the database; change its items instead');
END;
CREATE TRIGGER jobs_keep_dedupe BEFORE UPDATE OF dedupe_key, state ON jobs
WHEN NEW.dedupe_key IS NOT NULL AND (NEW.state = 'queued' OR NEW.state = 'running' OR NEW.state = 'paused')
    AND (OLD.dedupe_key IS NOT NEW.dedupe_key OR NOT (OLD.state = 'queued' OR OLD.state = 'running' OR OLD.state = 'paused')) BEGIN
    SELECT RAISE(ABORT, 'another unfinished job has this dedupe_key') WHERE EXISTS (SELECT 1 FROM jobs
        WHERE dedupe_key = NEW.dedupe_key AND (state = 'queued' OR state = 'running' OR state = 'paused') AND id <> NEW.id);
END;
CREATE TRIGGER jobs_stay_finished AFTER UPDATE OF state ON jobs
WHEN NEW.revision = OLD.revision AND (NEW.state = 'queued' OR NEW.state = 'running' OR NEW.state = 'paused') AND NEW.total > 0
    AND NEW.queued + NEW.active + NEW.delayed = 0 BEGIN
    UPDATE jobs SET state = 'finished', finished_at = coalesce(OLD.finished_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)) WHERE id = NEW.id;
END;
CREATE TRIGGER jobs_spread AFTER INSERT ON jobs WHEN NEW.urls IS NOT NULL BEGIN
    UPDATE jobs SET urls = '[]' WHERE id = NEW.id;
    DELETE FROM spreading;
    INSERT INTO spreading (job) VALUES (NEW.id);
    INSERT INTO items (job, url) SELECT NEW.id, value FROM json_each(NEW.urls);
    UPDATE jobs SET urls = NULL, total = n, queued = n - counted.failed, failed = counted.failed,
        revision = revision + 1
        FROM (SELECT (SELECT count(*) FROM items WHERE job = NEW.id) AS n, failed FROM spreading) AS counted
        WHERE id = NEW.id;
    DELETE FROM spreading;
    UPDATE jobs SET state = 'finished', finished_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) WHERE id = NEW.id AND queued = 0;
END;
CREATE TRIGGER jobs_note_end AFTER UPDATE OF state ON jobs
WHEN OLD.state <> NEW.state AND (NEW.state = 'finished' OR NEW.state = 'cancelled' OR NEW.state = 'failed')
    AND NEW.finished_at IS NULL BEGIN
    UPDATE jobs SET finished_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) WHERE id = NEW.id;
END;
CREATE TRIGGER items_check_insert BEFORE INSERT ON items
WHEN NEW.state IS NOT 'queued' OR NEW.job IS NULL OR NEW.attempts <> 0 OR NEW.deaths <> 0 BEGIN
    SELECT RAISE(ABORT, 'an item needs the id of its job') WHERE NEW.job IS NULL;
    SELECT RAISE(ABORT, 'a new item has no attempts and no deaths; leave them out of the INSERT')
        WHERE NEW.attempts <> 0 OR NEW.deaths <> 0;
    SELECT RAISE(ABORT, 'a new item is ''queued''; leave state out of the INSERT');
END;
CREATE TRIGGER items_delete_tries AFTER DELETE ON items BEGIN
    DELETE FROM tries WHERE item = OLD.id;
END;
CREATE TRIGGER items_refuse_replacing BEFORE INSERT ON items
WHEN NEW.id <> -1 AND (NEW.id < 1 OR NEW.id > 4503599627370496 OR EXISTS (SELECT 1 FROM items WHERE id = NEW.id)) BEGIN
    SELECT RAISE(ABORT, 'the id of an item is a positive number that no other item has; leave it out of the INSERT');
END;
CREATE TRIGGER unnoted_urls_note INSTEAD OF INSERT ON unnoted_urls BEGIN
    INSERT INTO done_urls VALUES ('', 0);
    INSERT INTO done_urls SELECT url, id FROM items WHERE state = 'done' ORDER BY url, id;
END;
CREATE TRIGGER items_leave_out_known BEFORE INSERT ON items
WHEN EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job AND instr(options, 'only-new') > 0
        AND ',' || replace(replace(replace(replace(options, char(9), ','), char(10), ','), char(13), ','), char(32), ',') || ',' LIKE '%,only-new,%') BEGIN
    INSERT INTO unnoted_urls SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM done_urls);
    UPDATE jobs SET not_new = not_new + 1, revision = revision + 1 WHERE id = NEW.job AND EXISTS (SELECT 1 FROM done_urls CROSS JOIN items ON items.id = done_urls.item
            WHERE done_urls.url = NEW.url AND items.state = 'done');
    UPDATE jobs SET state = 'finished', finished_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) WHERE id = NEW.job
        AND queued = 0 AND active = 0 AND delayed = 0 AND (state = 'queued' OR state = 'running' OR state = 'paused')
        AND urls IS NULL AND EXISTS (SELECT 1 FROM done_urls CROSS JOIN items ON items.id = done_urls.item
            WHERE done_urls.url = NEW.url AND items.state = 'done');
    SELECT RAISE(IGNORE) WHERE EXISTS (SELECT 1 FROM done_urls CROSS JOIN items ON items.id = done_urls.item
            WHERE done_urls.url = NEW.url AND items.state = 'done');
END;
CREATE TRIGGER items_keep_job BEFORE UPDATE OF id, rowid, oid, _rowid_, job, url ON items
WHEN OLD.id <> NEW.id OR OLD.job <> NEW.job OR OLD.url IS NOT NEW.url BEGIN
    SELECT RAISE(ABORT, 'the id, job and url of an item stay as they are; insert a new item instead');
END;
CREATE TRIGGER items_end_without_url AFTER INSERT ON items WHEN (typeof(NEW.url) <> 'text' OR NEW.url NOT GLOB '*[^0-9.e+ 	

-]*') BEGIN
    UPDATE spreading SET failed = failed + 1 WHERE job = NEW.job;
    UPDATE items SET state = 'failed', class = 'invalid-url',
        message = 'The item has no URL.', finished_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) WHERE id = NEW.id;
    -- Otherwise items_count_update logs it.
    INSERT INTO event_log (at, detail) SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER),
        json_array(json_array(NEW.id, NEW.job, 'failed', 'invalid-url'))
        WHERE EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job AND urls IS NOT NULL);
END
;
CREATE TRIGGER items_count_insert AFTER INSERT ON items
WHEN NOT EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job AND urls IS NOT NULL) BEGIN
    SELECT RAISE(ABORT, 'the id of an item is a positive number; leave it out of the INSERT') WHERE NEW.id < 1;
    UPDATE jobs SET state = 'queued', finished_at = NULL, revision = revision + 1
        WHERE id = NEW.job AND state = 'finished';
    UPDATE jobs SET total = total + 1, queued = queued + 1, revision = revision + 1
        WHERE id = NEW.job AND state NOT IN ('cancelled', 'failed');
    SELECT RAISE(ABORT, 'no open job has this id: insert the job first, and add items as in INSERT INTO items (job, url) SELECT (SELECT last_insert_rowid()), url FROM …')
        WHERE changes() = 0;
END;
CREATE TRIGGER uncounted_moves_count INSTEAD OF INSERT ON uncounted_moves BEGIN
    UPDATE jobs SET
        queued = queued + (NEW.state = 'queued') - (NEW.was_state = 'queued'),
        active = active + (NEW.state = 'active') - (NEW.was_state = 'active'),
        delayed = delayed + (NEW.state = 'delayed') - (NEW.was_state = 'delayed'),
        done = done + ((NEW.state = 'done' AND NEW.cached = 0)) - ((NEW.was_state = 'done' AND NEW.was_cached = 0)),
        cached = cached + ((NEW.state = 'done' AND NEW.cached <> 0)) - ((NEW.was_state = 'done' AND NEW.was_cached <> 0)),
        failed = failed + ((NEW.state = 'failed' AND NEW.blacklisted = 0)) - ((NEW.was_state = 'failed' AND NEW.was_blacklisted = 0)),
        blacklisted = blacklisted + ((NEW.state = 'failed' AND NEW.blacklisted <> 0)) - ((NEW.was_state = 'failed' AND NEW.was_blacklisted <> 0)),
        cancelled = cancelled + (NEW.state = 'cancelled') - (NEW.was_state = 'cancelled'),
        revision = revision + 1,
        bytes = bytes + CASE WHEN NEW.state = 'done' AND NEW.cached = 0 THEN coalesce(NEW.bytes, 0) ELSE 0 END
        WHERE id = NEW.job AND NOT (NEW.state = 'queued' AND (NEW.was_state = 'failed' OR NEW.was_state = 'cancelled')
            AND (state = 'finished' OR state = 'cancelled' OR state = 'failed'));
    -- By itself, since an UPDATE that names `state` rewrites the indices that depend on it.
    UPDATE jobs SET
        queued = queued + (NEW.state = 'queued') - (NEW.was_state = 'queued'),
        active = active + (NEW.state = 'active') - (NEW.was_state = 'active'),
        delayed = delayed + (NEW.state = 'delayed') - (NEW.was_state = 'delayed'),
        done = done + ((NEW.state = 'done' AND NEW.cached = 0)) - ((NEW.was_state = 'done' AND NEW.was_cached = 0)),
        cached = cached + ((NEW.state = 'done' AND NEW.cached <> 0)) - ((NEW.was_state = 'done' AND NEW.was_cached <> 0)),
        failed = failed + ((NEW.state = 'failed' AND NEW.blacklisted = 0)) - ((NEW.was_state = 'failed' AND NEW.was_blacklisted = 0)),
        blacklisted = blacklisted + ((NEW.state = 'failed' AND NEW.blacklisted <> 0)) - ((NEW.was_state = 'failed' AND NEW.was_blacklisted <> 0)),
        cancelled = cancelled + (NEW.state = 'cancelled') - (NEW.was_state = 'cancelled'),
        revision = revision + 1, state = 'queued', finished_at = NULL, error = NULL
        WHERE id = NEW.job AND (NEW.state = 'queued' AND (NEW.was_state = 'failed' OR NEW.was_state = 'cancelled')
            AND (state = 'finished' OR state = 'cancelled' OR state = 'failed'));
    INSERT OR IGNORE INTO done_urls SELECT url, id FROM items
        WHERE id = NEW.id AND state = 'done' AND EXISTS (SELECT 1 FROM done_urls);
    INSERT INTO event_log (at, detail)
        SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER), json_array(json_array(NEW.id, NEW.job,
            CASE WHEN NEW.state = 'done' AND NEW.cached <> 0 THEN 'cached'
                WHEN NEW.state = 'failed' AND NEW.blacklisted <> 0 THEN 'blacklisted' ELSE NEW.state END,
            NEW.class))
        WHERE NEW.state = 'done' OR NEW.state = 'failed' OR NEW.state = 'cancelled';
    UPDATE jobs SET state = 'finished', finished_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)
        WHERE id = NEW.job AND queued = 0 AND active = 0 AND delayed = 0 AND (state = 'queued' OR state = 'running' OR state = 'paused');
END
;
CREATE TRIGGER items_count_update AFTER UPDATE OF state ON items
WHEN OLD.state <> NEW.state AND NOT EXISTS
    (SELECT 1 FROM moving WHERE (item = NEW.id OR item = -NEW.job) AND state = NEW.state)
    AND NOT (OLD.state = 'queued' AND NEW.state = 'failed' AND EXISTS (SELECT 1 FROM jobs WHERE id = NEW.job AND urls IS NOT NULL)) BEGIN
    INSERT INTO uncounted_moves VALUES (NEW.id, NEW.job, OLD.state, OLD.cached, OLD.blacklisted,
        NEW.state, NEW.cached, NEW.blacklisted, NEW.bytes, NEW.class);
END;
CREATE TRIGGER items_delete AFTER DELETE ON items BEGIN
    DELETE FROM renditions WHERE item = OLD.id;
    DELETE FROM done_urls WHERE url = OLD.url AND item = OLD.id;
END;
CREATE TRIGGER items_count_delete AFTER DELETE ON items
WHEN EXISTS (SELECT 1 FROM jobs WHERE id = OLD.job)
    AND NOT EXISTS (SELECT 1 FROM moving WHERE item = -OLD.job AND state = 'deleted') BEGIN
    UPDATE jobs SET
        total = total - 1,
        queued = queued - (OLD.state = 'queued'),
        active = active - (OLD.state = 'active'),
        delayed = delayed - (OLD.state = 'delayed'),
        done = done - ((OLD.state = 'done' AND OLD.cached = 0)),
        cached = cached - ((OLD.state = 'done' AND OLD.cached <> 0)),
        failed = failed - ((OLD.state = 'failed' AND OLD.blacklisted = 0)),
        blacklisted = blacklisted - ((OLD.state = 'failed' AND OLD.blacklisted <> 0)),
        cancelled = cancelled - (OLD.state = 'cancelled'),
        revision = revision + 1
        WHERE id = OLD.job;
    UPDATE jobs SET state = 'finished', finished_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)
        WHERE id = OLD.job AND queued = 0 AND active = 0 AND delayed = 0 AND (state = 'queued' OR state = 'running' OR state = 'paused');
END;
CREATE TRIGGER items_keep_deaths BEFORE UPDATE OF deaths ON items
WHEN typeof(NEW.deaths) <> 'integer' OR NEW.deaths NOT BETWEEN 0 AND 100 BEGIN
    SELECT RAISE(ABORT, 'deaths must be a whole number from 0 to 100: the workers that died while they held the item');
END;
CREATE TRIGGER items_check_update BEFORE UPDATE OF state, cached, blacklisted, bytes ON items
WHEN CASE WHEN OLD.state = NEW.state THEN OLD.finished_at IS NOT NULL
        AND (NEW.cached IS NOT OLD.cached OR NEW.blacklisted IS NOT OLD.blacklisted OR NEW.bytes IS NOT OLD.bytes)
    ELSE OLD.state <> NEW.state AND NOT CASE OLD.state WHEN 'queued' THEN NEW.state = 'active' OR NEW.state = 'failed' OR NEW.state = 'cancelled' WHEN 'active' THEN NEW.state = 'queued' OR NEW.state = 'delayed' OR NEW.state = 'done' OR NEW.state = 'failed' OR NEW.state = 'cancelled' WHEN 'delayed' THEN NEW.state = 'queued' OR NEW.state = 'cancelled' WHEN 'done' THEN FALSE WHEN 'failed' THEN NEW.state = 'queued' WHEN 'cancelled' THEN NEW.state = 'queued' ELSE FALSE END END BEGIN
    SELECT RAISE(ABORT, 'the result of an ended item cannot be changed; retry the item instead') WHERE OLD.state = NEW.state;
    SELECT RAISE(ABORT, 'the states of an item are queued, active, delayed, done, failed, cancelled, in lower case')
        WHERE NOT (NEW.state = 'queued' OR NEW.state = 'active' OR NEW.state = 'delayed' OR NEW.state = 'done' OR NEW.state = 'failed' OR NEW.state = 'cancelled');
    SELECT RAISE(ABORT, 'an item can''t move between these states; docs/reference/sql.md shows the moves it can make');
END;
CREATE TRIGGER items_check_own BEFORE INSERT ON items
WHEN NEW.meta IS NOT NULL OR NEW.priority IS NOT NULL OR NEW.variants IS NOT NULL OR NEW.headers IS NOT NULL OR NEW.sha256 IS NOT NULL OR NEW.size IS NOT NULL OR NEW.fallbacks IS NOT NULL BEGIN
    SELECT RAISE(ABORT, 'meta must be a JSON object of at most 16 KiB, as in json_object(''sku'', 7)') WHERE NEW.meta IS NOT NULL AND CASE WHEN json_valid(NEW.meta)
    THEN json_type(NEW.meta) <> 'object' OR length(CAST(NEW.meta AS BLOB)) > 16384 ELSE TRUE END;
SELECT RAISE(ABORT, 'the priority of an item must be a whole number from -100 to 100 (or NULL for its job''s)') WHERE NEW.priority IS NOT NULL AND (typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN -100 AND 100);
SELECT RAISE(ABORT, 'variants must be text, as in ''thumb=320x240,cover,webp,q80''') WHERE NEW.variants IS NOT NULL AND typeof(NEW.variants) <> 'text';
SELECT RAISE(ABORT, 'headers must be a JSON object of strings, as in ''{"Referer":"https://example.com/"}''') WHERE NEW.headers IS NOT NULL AND CASE WHEN json_valid(NEW.headers)
    THEN json_type(NEW.headers) <> 'object' OR EXISTS (SELECT 1 FROM json_each(NEW.headers) WHERE type <> 'text') ELSE TRUE END;
SELECT RAISE(ABORT, 'sha256 must be 64 hexadecimal digits') WHERE NEW.sha256 IS NOT NULL AND (typeof(NEW.sha256) <> 'text' OR length(NEW.sha256) <> 64
    OR NEW.sha256 GLOB '*[^0-9a-fA-F]*');
SELECT RAISE(ABORT, 'size must be a whole number of bytes, 0 or more') WHERE NEW.size IS NOT NULL AND (typeof(NEW.size) <> 'integer' OR NEW.size < 0);
SELECT RAISE(ABORT, 'fallbacks must be a JSON array of at most 16 strings, as in json_array(''https://example.com/b.jpg'')') WHERE NEW.fallbacks IS NOT NULL AND CASE WHEN json_valid(NEW.fallbacks)
    THEN json_type(NEW.fallbacks) <> 'array' OR json_array_length(NEW.fallbacks) > 16 OR EXISTS (SELECT 1 FROM json_each(NEW.fallbacks) WHERE type <> 'text') ELSE TRUE END;
END;
CREATE TRIGGER items_check_own_update BEFORE UPDATE OF meta, priority, variants, headers, sha256, size, fallbacks ON items BEGIN
    SELECT RAISE(ABORT, 'meta must be a JSON object of at most 16 KiB, as in json_object(''sku'', 7)') WHERE NEW.meta IS NOT NULL AND CASE WHEN json_valid(NEW.meta)
    THEN json_type(NEW.meta) <> 'object' OR length(CAST(NEW.meta AS BLOB)) > 16384 ELSE TRUE END;
SELECT RAISE(ABORT, 'the priority of an item must be a whole number from -100 to 100 (or NULL for its job''s)') WHERE NEW.priority IS NOT NULL AND (typeof(NEW.priority) <> 'integer' OR NEW.priority NOT BETWEEN -100 AND 100);
SELECT RAISE(ABORT, 'variants must be text, as in ''thumb=320x240,cover,webp,q80''') WHERE NEW.variants IS NOT NULL AND typeof(NEW.variants) <> 'text';
SELECT RAISE(ABORT, 'headers must be a JSON object of strings, as in ''{"Referer":"https://example.com/"}''') WHERE NEW.headers IS NOT NULL AND CASE WHEN json_valid(NEW.headers)
    THEN json_type(NEW.headers) <> 'object' OR EXISTS (SELECT 1 FROM json_each(NEW.headers) WHERE type <> 'text') ELSE TRUE END;
SELECT RAISE(ABORT, 'sha256 must be 64 hexadecimal digits') WHERE NEW.sha256 IS NOT NULL AND (typeof(NEW.sha256) <> 'text' OR length(NEW.sha256) <> 64
    OR NEW.sha256 GLOB '*[^0-9a-fA-F]*');
SELECT RAISE(ABORT, 'size must be a whole number of bytes, 0 or more') WHERE NEW.size IS NOT NULL AND (typeof(NEW.size) <> 'integer' OR NEW.size < 0);
SELECT RAISE(ABORT, 'fallbacks must be a JSON array of at most 16 strings, as in json_array(''https://example.com/b.jpg'')') WHERE NEW.fallbacks IS NOT NULL AND CASE WHEN json_valid(NEW.fallbacks)
    THEN json_type(NEW.fallbacks) <> 'array' OR json_array_length(NEW.fallbacks) > 16 OR EXISTS (SELECT 1 FROM json_each(NEW.fallbacks) WHERE type <> 'text') ELSE TRUE END;
END;
CREATE TRIGGER blacklist_delete INSTEAD OF DELETE ON blacklist BEGIN
    DELETE FROM blacklist_entries WHERE url = OLD.url;
END;
CREATE TRIGGER entries_delete INSTEAD OF DELETE ON entries BEGIN
    INSERT OR REPLACE INTO removed_links (key, variant, format) SELECT OLD.key, OLD.variant, OLD.format
        WHERE EXISTS (SELECT 1 FROM cache_properties WHERE name = 'links');
    DELETE FROM cache_entries WHERE key = OLD.key AND variant = OLD.variant;
    UPDATE sources SET kept = 0 WHERE key = OLD.key AND OLD.variant = 'original';
    UPDATE blobs SET dying = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) WHERE hash = OLD.blob AND dying = 0
        AND NOT EXISTS (SELECT 1 FROM cache_entries WHERE blob = OLD.blob)
        AND NOT EXISTS (SELECT 1 FROM sources WHERE hash = OLD.blob AND kept <> 0);
END;
CREATE TRIGGER event_log_refuse_ids BEFORE INSERT ON event_log WHEN NEW.id <> -1 BEGIN
    SELECT RAISE(ABORT, 'the id of an event is left to the database; leave it out of the INSERT');
END;
CREATE TRIGGER event_log_keep_ids BEFORE UPDATE OF id, rowid, oid, _rowid_ ON event_log
WHEN OLD.id <> NEW.id BEGIN
    SELECT RAISE(ABORT, 'the id of an event stays as it is');
END;
CREATE TRIGGER events_of_new_jobs AFTER INSERT ON jobs BEGIN
    INSERT INTO event_log (at, detail)
        VALUES (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER), json_array(json_array(NULL, NEW.id, NEW.state)));
END;
CREATE TRIGGER events_of_jobs AFTER UPDATE OF state ON jobs WHEN OLD.state <> NEW.state BEGIN
    INSERT INTO event_log (at, detail)
        VALUES (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER), json_array(json_array(NULL, NEW.id, NEW.state)));
END;
CREATE TRIGGER schedules_plan_anew AFTER UPDATE OF cron, time_zone, jitter, paused ON schedules
WHEN NEW.cron IS NOT OLD.cron OR NEW.time_zone IS NOT OLD.time_zone OR NEW.jitter IS NOT OLD.jitter OR NEW.paused IS NOT OLD.paused BEGIN
    UPDATE schedules SET next_due = NULL, starts_at = NULL, error = NULL WHERE name = NEW.name;
END;
CREATE TRIGGER schedules_delete AFTER DELETE ON schedules BEGIN
    DELETE FROM schedule_runs WHERE schedule = OLD.name;
END;
CREATE TRIGGER jobs_expand_recipes AFTER INSERT ON jobs WHEN instr(NEW.variants, 'recipe:') > 0 AND instr((' ' || replace(replace(replace(replace(NEW.variants, char(9), ' '), char(10), ' '), char(13), ' '), ';', ' ') || ' '), ' recipe:') > 0
    AND substr(ltrim(NEW.variants, ' ' || char(9) || char(10) || char(13)), 1, 1) NOT IN ('{', '[') BEGIN
    UPDATE jobs SET variants = NEW.variants WHERE id = NEW.id;
END;
CREATE TRIGGER jobs_expand_recipes_update AFTER UPDATE OF variants ON jobs WHEN instr(NEW.variants, 'recipe:') > 0 AND instr((' ' || replace(replace(replace(replace(NEW.variants, char(9), ' '), char(10), ' '), char(13), ' '), ';', ' ') || ' '), ' recipe:') > 0
    AND substr(ltrim(NEW.variants, ' ' || char(9) || char(10) || char(13)), 1, 1) NOT IN ('{', '[') BEGIN
    SELECT RAISE(ABORT, 'variants names a recipe that does not exist; SELECT name FROM recipes lists those that do')
        WHERE EXISTS (SELECT 1 FROM json_each('[' || replace(json_quote((' ' || replace(replace(replace(replace(NEW.variants, char(9), ' '), char(10), ' '), char(13), ' '), ';', ' ') || ' ')), ' ', '","') || ']') WHERE value GLOB 'recipe:*'
            AND substr(value, 8) NOT IN (SELECT name FROM recipes));
    UPDATE jobs SET variants = (SELECT group_concat(part, ' ')
        FROM (SELECT coalesce(recipes.variants, word.value) AS part FROM json_each('[' || replace(json_quote((' ' || replace(replace(replace(replace(NEW.variants, char(9), ' '), char(10), ' '), char(13), ' '), ';', ' ') || ' ')), ' ', '","') || ']') AS word
            LEFT JOIN recipes ON word.value = 'recipe:' || recipes.name WHERE word.value <> ''
            ORDER BY word.key) AS parts)
        WHERE id = NEW.id;
END;
CREATE TRIGGER items_expand_recipes AFTER INSERT ON items WHEN instr(NEW.variants, 'recipe:') > 0 AND instr((' ' || replace(replace(replace(replace(NEW.variants, char(9), ' '), char(10), ' '), char(13), ' '), ';', ' ') || ' '), ' recipe:') > 0
    AND substr(ltrim(NEW.variants, ' ' || char(9) || char(10) || char(13)), 1, 1) NOT IN ('{', '[') BEGIN
    UPDATE items SET variants = NEW.variants WHERE id = NEW.id;
END;
CREATE TRIGGER items_expand_recipes_update AFTER UPDATE OF variants ON items WHEN instr(NEW.variants, 'recipe:') > 0 AND instr((' ' || replace(replace(replace(replace(NEW.variants, char(9), ' '), char(10), ' '), char(13), ' '), ';', ' ') || ' '), ' recipe:') > 0
    AND substr(ltrim(NEW.variants, ' ' || char(9) || char(10) || char(13)), 1, 1) NOT IN ('{', '[') BEGIN
    SELECT RAISE(ABORT, 'variants names a recipe that does not exist; SELECT name FROM recipes lists those that do')
        WHERE EXISTS (SELECT 1 FROM json_each('[' || replace(json_quote((' ' || replace(replace(replace(replace(NEW.variants, char(9), ' '), char(10), ' '), char(13), ' '), ';', ' ') || ' ')), ' ', '","') || ']') WHERE value GLOB 'recipe:*'
            AND substr(value, 8) NOT IN (SELECT name FROM recipes));
    UPDATE items SET variants = (SELECT group_concat(part, ' ')
        FROM (SELECT coalesce(recipes.variants, word.value) AS part FROM json_each('[' || replace(json_quote((' ' || replace(replace(replace(replace(NEW.variants, char(9), ' '), char(10), ' '), char(13), ' '), ';', ' ') || ' ')), ' ', '","') || ']') AS word
            LEFT JOIN recipes ON word.value = 'recipe:' || recipes.name WHERE word.value <> ''
            ORDER BY word.key) AS parts)
        WHERE id = NEW.id;
END;
CREATE TRIGGER jobs_notify AFTER UPDATE OF state ON jobs
WHEN NEW.notify IS NOT NULL AND OLD.state <> NEW.state
    AND (NEW.state = 'finished' OR NEW.state = 'cancelled' OR NEW.state = 'failed') BEGIN
    INSERT OR REPLACE INTO notices (job, ended_at, due_at) VALUES (NEW.id, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER), CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER));
END;
CREATE TRIGGER jobs_forget_notice AFTER DELETE ON jobs BEGIN
    DELETE FROM notices WHERE job = OLD.id;
END;
CREATE TRIGGER moving_refuse BEFORE INSERT ON moving WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER job_additions_refuse BEFORE INSERT ON job_additions WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER recounts_refuse BEFORE INSERT ON recounts WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER reservations_refuse BEFORE INSERT ON reservations WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER workers_refuse BEFORE INSERT ON workers WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER leases_refuse BEFORE INSERT ON leases WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER recounts_refuse_update BEFORE UPDATE ON recounts WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER reservations_refuse_update BEFORE UPDATE ON reservations WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER workers_refuse_update BEFORE UPDATE OF id ON workers WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER leases_refuse_update BEFORE UPDATE OF id ON leases WHEN NOT only_the_worker_writes_to_this_table() BEGIN
    SELECT RAISE(ABORT, 'only the worker writes to this table');
END;
CREATE TRIGGER jobs_refuse_state BEFORE UPDATE OF state ON jobs WHEN NOT (NEW.state = 'queued' OR NEW.state = 'running' OR NEW.state = 'paused' OR NEW.state = 'finished' OR NEW.state = 'cancelled' OR NEW.state = 'failed') BEGIN
    SELECT RAISE(ABORT, 'the states of a job are queued, running, paused, finished, cancelled, failed, in lower case');
END;
CREATE TRIGGER blacklist_refuse_insert INSTEAD OF INSERT ON blacklist BEGIN
    SELECT RAISE(ABORT, 'a URL is listed when it fails for good; to list one by hand, insert it into blacklist_entries, as docs/reference/sql.md shows');
END;
CREATE TRIGGER limits_refuse_url BEFORE INSERT ON limits WHEN (NEW.host GLOB '*[/ @]*' OR length(NEW.host) - length(replace(NEW.host, ':', '')) = 1) BEGIN
    SELECT RAISE(ABORT, 'a host is a name without scheme, port and path, as in images.example.com; or * for all');
END;
CREATE TRIGGER limits_refuse_url_update BEFORE UPDATE OF host ON limits WHEN (NEW.host GLOB '*[/ @]*' OR length(NEW.host) - length(replace(NEW.host, ':', '')) = 1) BEGIN
    SELECT RAISE(ABORT, 'a host is a name without scheme, port and path, as in images.example.com; or * for all');
END;
COMMIT;
