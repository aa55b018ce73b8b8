# shellcheck shell=bash
# An idle worker: how often it wakes, and what that costs. Sourced by scripts/bench.

# wakeups PID: how often its threads have waited and gone on.
wakeups() { awk '/^voluntary_ctxt_switches/ { sum += $2 } END { print sum }' /proc/"$1"/task/*/status; }
# ticks PID: of CPU.
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

bench_idle() {
    local pid seconds=30 woken used started
    round=$(mktemp -d "$state/round.XXXXXX")
    export WORKER_DB=$round/worker.db WORKER_CACHE=$round/cache
    "$worker" init >/dev/null
    "$worker" run --quiet >/dev/null &
    pid=$!
    sleep 5
    woken=$(wakeups "$pid") used=$(ticks "$pid")
    sleep "$seconds"
    woken=$(($(wakeups "$pid") - woken)) used=$(($(ticks "$pid") - used))
    started=$(date +%s%N)
    "$worker" wait "$("$worker" enqueue 'data:text/plain,x' 2>/dev/null)" >/dev/null 2>&1 || true # it fails: data: isn't allowed
    echo
    echo "An idle worker, for $seconds s: $(ratio "$woken" "$seconds") wake-ups a second, $(awk -v used="$used" -v s="$seconds" -v hz="$(getconf CLK_TCK)" 'BEGIN { printf "%.2f", 100 * used / hz / s }') % of a core"
    echo "A new job ends $((($(date +%s%N) - started) / 1000000)) ms after the call of worker enqueue"
    kill "$pid"
    wait "$pid" || true
    rm -rf "$round"
}
