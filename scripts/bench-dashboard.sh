# shellcheck shell=bash
# A part of scripts/bench: what the dashboard costs a worker that takes 500 items a second of a job of 1,000,000.

# spent PID: the seconds of CPU that a process and its ended children have had, its helpers left out.
spent() { awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) / ticks }' "/proc/$1/stat"; }

# per_second MODE: sets cost to the milliseconds of CPU a second and rate to the items a second, over 20 s of a run
# without a dashboard (none), with one that no page is open of (unwatched), or with one page open (watched).
per_second() {
    local pid port=$((40000 + RANDOM % 9000)) flags=() page='' begun cpu_before items_before
    [ "$1" = none ] || flags=(--dashboard "127.0.0.1:$port")
    "$worker" run --quiet --concurrency 32 --per-host 32 --rate 500 --burst 50 --transforms 2 --allow-addresses loopback \
        "${flags[@]}" >/dev/null 2>"$state/err" &
    pid=$!
    sleep 4
    if [ "$1" = watched ]; then
        # What the page of all jobs asks for: the stream, and the charts every five seconds.
        (
            curl --silent --no-buffer "http://127.0.0.1:$port/api/stream" >"$state/stream" &
            trap 'kill $!; exit' TERM
            while true; do
                curl --silent --output /dev/null "http://127.0.0.1:$port/api/charts"
                sleep 5 &
                wait $!
            done
        ) &
        page=$!
    fi
    sleep 2
    begun=$(date +%s.%N) cpu_before=$(spent "$pid") items_before=$(ask_hosts "SELECT sum(ended) FROM progress")
    sleep 20
    cost=$(awk -v a="$cpu_before" -v b="$(spent "$pid")" -v t="$begun" -v u="$(date +%s.%N)" \
        'BEGIN { print (b - a) / (u - t) * 1000 }')
    rate=$(awk -v a="$items_before" -v b="$(ask_hosts "SELECT sum(ended) FROM progress")" -v t="$begun" -v u="$(date +%s.%N)" \
        'BEGIN { print (b - a) / (u - t) }')
    [ -z "$page" ] || { pkill -TERM -P "$page" curl; kill -TERM "$page"; wait "$page"; } 2>/dev/null || true
    kill -TERM "$pid"
    wait "$pid" || true
}

# asked PATH: the median of 20 requests to the dashboard at $port, in milliseconds, with the lowest and the highest.
asked() {
    local i times=()
    for i in $(seq 20); do
        times+=("$(curl --silent --fail --output /dev/null --write-out '%{time_total}' "http://127.0.0.1:$port$1" | awk '{ print $1 * 1000 }')")
    done
    spread "${times[@]}"
}

# How many requests read the order, and how many milliseconds the slowest took.
sorting() {
    local count=0 slowest=0 answer time
    while true; do
        answer=$(curl --silent --fail --write-out '\n%{time_total}' "http://127.0.0.1:$port/api/jobs/1/items?sort=bytes")
        time=$(tail -n 1 <<<"$answer")
        count=$((count + 1))
        slowest=$(awk -v a="$slowest" -v b="$time" 'BEGIN { print (b * 1000 > a) ? b * 1000 : a }')
        grep -q '"progress"' <<<"$answer" || break
    done
    echo "$count requests, the slowest ${slowest} ms,"
}

# painted PAGE CONDITION: what a browser takes for the first paint of a page, and until it shows what the condition asks for.
painted() {
    local times
    times=$(/usr/bin/python3 Tests/Browser/paint.py "http://127.0.0.1:$port" "$1" "$2" 5) || return
    # shellcheck disable=SC2046 # numbers
    echo "first paint $(spread $(awk '{ print $1 }' <<<"$times")), complete $(spread $(awk '{ print $2 }' <<<"$times"))"
}

# What pages and scrapes take with a job of 1,000,000 items.
answers() {
    local pid port=$((40000 + RANDOM % 9000))
    "$worker" dashboard --listen "127.0.0.1:$port" >/dev/null 2>"$state/err" &
    pid=$!
    until curl --silent --output /dev/null "http://127.0.0.1:$port/healthz"; do sleep 0.1; done
    echo "  milliseconds: the page $(asked /), a scrape $(asked /metrics), the state $(asked /api/jobs/1)"
    echo "  a page of items: first $(asked "/api/jobs/1/items"), of a state $(asked "/api/jobs/1/items?state=done"), far behind $(asked "/api/jobs/1/items?after=900000")"
    echo "  a page in the order of sizes: the first one after $(sorting) further ones $(asked "/api/jobs/1/items?sort=bytes&after=5000")"
    if command -v chromium-headless-shell >/dev/null && /usr/bin/python3 -c 'import websocket' 2>/dev/null; then
        echo "  the list of jobs in Chromium: $(painted '/' "document.querySelectorAll('main tbody tr').length > 0")"
        echo "  the job and its items: $(painted '/#/jobs/1' "document.querySelectorAll('main table tbody tr').length > 4")"
    else
        echo "  There is no Chromium, or no python3-websocket, so no page is painted."
    fi
    kill -TERM "$pid"
    wait "$pid" || true
}

bench_dashboard() {
    local i mode ratios_unwatched=() ratios_watched=()
    declare -A costs=() of
    small 5000
    fresh
    "$worker" init >/dev/null
    for i in $(seq 0 199); do sed "s/\$/?$i/" "$state/urls.txt"; done | "$worker" enqueue -f - --option avoid-decode-image >/dev/null
    echo
    echo "A dashboard beside 500 items a second of a job of 1,000,000; milliseconds of the worker's CPU a second"
    printf '%6s %12s %12s %12s %10s\n' round none unwatched watched items/s
    for i in $(seq "$runs"); do
        for mode in none unwatched watched; do
            per_second $mode
            of[$mode]=$cost
            costs[$mode]+=" $cost"
        done
        ratios_unwatched+=("$(ratio "${of[unwatched]}" "${of[none]}")") ratios_watched+=("$(ratio "${of[watched]}" "${of[none]}")")
        printf '%6s %12.1f %12.1f %12.1f %10.0f\n' "$i" "${of[none]}" "${of[unwatched]}" "${of[watched]}" "$rate"
    done
    # shellcheck disable=SC2086 # words
    echo "  none $(median ${costs[none]}), unwatched $(median ${costs[unwatched]}), watched $(median ${costs[watched]})"
    echo "  unwatched $(spread "${ratios_unwatched[@]}") times none, watched $(spread "${ratios_watched[@]}")"
    stop_serving
    answers
    sweep
}
