# shellcheck shell=bash
# How long clients with SQLite's usual settings wait beside work on a million items.

bench_waits() {
    python3 scripts/bench-waits.py "$worker" "$state/waits"
    rm -rf "$state/waits"
}
