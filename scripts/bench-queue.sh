# shellcheck shell=bash
# A part of scripts/bench: how many items a second the queue claims and ends, on both engines, without downloads.
#
#   QUEUE_WAITING=10000000 scripts/bench queue     with so many items waiting (1,000,000)
#   QUEUE_SECONDS=60 scripts/bench queue           for so long (10)

# queue_sql SQL: runs it in the database of the engine that is measured.
queue_sql() {
    if [ "$engine" = SQLite ]; then sqlite3 "$database" "$1"; else psql -qAt -v ON_ERROR_STOP=1 "$database" -c "$1"; fi
}

# Prints how many bytes the server has written to its log.
queue_log() { if [ "$engine" = PostgreSQL ]; then queue_sql "SELECT pg_current_wal_lsn() - '0/0'"; fi; }

bench_queue() {
    local helper engine database server='' number before after job waiting=${QUEUE_WAITING:-1000000}
    swift build -c release --product TestHelper --static-swift-stdlib 2> >(grep -v 'prohibited flag' >&2) >&2
    helper=${worker%/*}/TestHelper
    echo
    echo "Claim and end, without downloads, in groups of 256; $waiting items waiting"
    for engine in SQLite PostgreSQL; do
        if [ "$engine" = SQLite ]; then
            database=$state/queue.db
            rm -f "$database"*
        else
            scripts/postgres-server --synced >"$state/postgres" 2>"$state/postgres.errors" &
            server=$!
            for _ in $(seq 300); do ! grep -q '^url=' "$state/postgres" || break; sleep 0.1; done
            database=$(sed -n 's/^url=//p' "$state/postgres")
        fi
        "$worker" init --db "$database" --cache "$state/queue-cache" >/dev/null
        queue_sql "INSERT INTO jobs (name, urls) VALUES ('queue', '[\"http://bench.example/0.jpg\"]')"
        job=$(queue_sql "SELECT max(id) FROM jobs")
        queue_sql "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $waiting)
            INSERT INTO items (job, url) SELECT $job, 'http://bench.example/images/' || i || '.jpg' FROM n"
        for ((number = 1; number <= runs; number++)); do
            before=$(queue_log)
            "$helper" queue "$database" 256 "${QUEUE_SECONDS:-10}" >"$state/queue.out"
            after=$(queue_log)
            awk -v engine="$engine" -v log_bytes="$((after - before))" '{
                printf "  %-10s %6.0f items a second", engine, $1 / $2
                if (NF > 2) printf ", %.3f round trips and %.0f bytes of WAL an item", $3 / $1, log_bytes / $1
                print ""
            }' "$state/queue.out"
        done
    done
    kill "$server"
    wait "$server" || true
    rm -rf "$state"/queue*
}
