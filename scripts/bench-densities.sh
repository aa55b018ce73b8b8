# shellcheck shell=bash
# A part of scripts/bench: what three densities of one variant cost, beside the largest alone.

# job_cost VARIANTS…: sets cpu to the seconds of CPU of a run over $state/urls.txt, and keeps the database.
job_cost() {
    variants=()
    for variant in "$@"; do variants+=(--variant "$variant"); done
    timed worker_run
}

# hashes: the renditions of the last run, by URL and width.
hashes() { sqlite3 "$WORKER_DB" "SELECT url, width, path FROM results WHERE variant <> 'original' ORDER BY 1, 2"; }

# raw_cost WIDTH: sets cpu to what one encoding of each picture costs: the pictures come uncompressed in the size that is
# encoded, and what such a run costs without the encoder is taken off.
raw_cost() {
    local width=$1 folder=$bench/raw-$1 list
    if [ ! -d "$folder" ]; then
        mkdir -p "$folder"
        find "$bench/images" -name '*.jpg' | sort | awk 'NR % 5 == 1' |
            xargs -P2 -n 20 vipsthumbnail --size "${width}x" -o "$folder/%s.tif[compression=none,strip]"
    fi
    serve "$folder" "$state"
    list=$state/urls.txt
    find "$folder" -name '*.tif' -printf "$origin_url/%f\n" | sort >"$list"
    job_cost "v=${width}x,webp,q80"
    local whole=$cpu
    job_cost "v=1x1,fill,webp,q80"
    cpu=$(awk -v a="$whole" -v b="$cpu" 'BEGIN { print a - b }')
    stop_serving
}

bench_densities() {
    local i alone three small middle ratios=() alones=() threes=() encodings=()
    make_images
    echo
    echo "120 JPEGs of 1600x1200 to 320 px WebP in densities 1, 2 and 3; CPU"
    for i in $(seq "$runs"); do
        raw_cost 320 && small=$cpu
        raw_cost 640 && middle=$cpu
        serve "$bench/images" "$state"
        find "$bench/images" -name '*.jpg' -printf "$origin_url/%f\n" | sort | awk 'NR % 5 == 1' >"$state/urls.txt"
        job_cost "v=960x,webp,q80" && alone=$cpu
        hashes >"$state/alone"
        job_cost "v=320x,webp,q80,@1+@2+@3" && three=$cpu
        hashes | awk -F'|' '$2 == 960' | cmp -s - "$state/alone" || { echo "  the largest has other bytes than alone" >&2; return 1; }
        stop_serving
        alones+=("$alone") threes+=("$three")
        encodings+=("$(awk -v a="$small" -v b="$middle" 'BEGIN { print a + b }')")
        ratios+=("$(awk -v t="$three" -v s="$small" -v m="$middle" -v a="$alone" 'BEGIN { printf "%.3f", (t - s - m) / a }')")
    done
    echo "  three $(median "${threes[@]}") s, the largest alone $(median "${alones[@]}") s, encoding the two others $(median "${encodings[@]}") s"
    echo "  three without the encoding of the two others, beside the largest alone: $(spread "${ratios[@]}")"
}
