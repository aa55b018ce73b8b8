# shellcheck shell=bash
# A part of scripts/bench: what the dashboard costs a worker that takes 500 items a second of a job of 1,000,000.

# spent PID: the seconds of CPU that a process and its ended children have had, its helpers left out.
spent() { awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) / ticks }' "/proc/$1/stat"; }

# over SECONDS: sets worker_cost and page_cost to the milliseconds of CPU a second that the worker and the dashboard have in
# that time, and rate to the items a second.
over() {
    local begun worker_before page_before items_before now
    begun=$(date +%s.%N) worker_before=$(spent "$working") page_before=$(spent "$showing")
    items_before=$(ask_hosts "SELECT sum(ended) FROM progress")
    sleep "$1"
    now=$(date +%s.%N)
    worker_cost=$(awk -v a="$worker_before" -v b="$(spent "$working")" -v t="$begun" -v u="$now" 'BEGIN { print (b - a) / (u - t) * 1000 }')
    page_cost=$(awk -v a="$page_before" -v b="$(spent "$showing")" -v t="$begun" -v u="$now" 'BEGIN { print (b - a) / (u - t) * 1000 }')
    rate=$(awk -v a="$items_before" -v b="$(ask_hosts "SELECT sum(ended) FROM progress")" -v t="$begun" -v u="$now" 'BEGIN { print (b - a) / (u - t) }')
}

# A page of all jobs that is open: what it asks for, the stream, and the charts every five seconds.
open_page() {
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

# The dashboard is a process of its own here, so that its cost is measured and not the difference of two runs. In a worker it
# does the same.
bench_dashboard() {
    local i port working showing page shares_unwatched=() shares_watched=()
    local worker_cost page_cost rate unwatched
    small 5000
    fresh
    "$worker" init >/dev/null
    for i in $(seq 0 199); do sed "s/\$/?$i/" "$state/urls.txt"; done | "$worker" enqueue -f - --option avoid-decode-image >/dev/null
    port=$((40000 + RANDOM % 9000))
    "$worker" run --quiet --concurrency 32 --per-host 32 --rate 500 --burst 50 --transforms 2 --allow-addresses loopback >/dev/null 2>"$state/err" &
    working=$!
    "$worker" dashboard --listen "127.0.0.1:$port" >/dev/null 2>"$state/err" &
    showing=$!
    sleep 6
    echo
    echo "A dashboard beside 500 items a second of a job of 1,000,000; milliseconds of CPU a second"
    printf '%6s %10s %12s %12s %10s\n' round worker unwatched watched items/s
    for i in $(seq "$runs"); do
        over 10
        unwatched=$page_cost
        shares_unwatched+=("$(ratio "$page_cost" "$worker_cost")")
        open_page
        sleep 1
        over 20
        shares_watched+=("$(ratio "$page_cost" "$worker_cost")")
        { pkill -TERM -P "$page" curl; kill -TERM "$page"; wait "$page"; } 2>/dev/null || true
        printf '%6s %10.1f %12.1f %12.1f %10.0f\n' "$i" "$worker_cost" "$unwatched" "$page_cost" "$rate"
    done
    echo "  the dashboard's share of the worker's CPU: unwatched $(spread "${shares_unwatched[@]}"), watched $(spread "${shares_watched[@]}")"
    kill -TERM "$showing" "$working"
    wait "$showing" "$working" || true
    stop_serving
    answers
    sweep
}
