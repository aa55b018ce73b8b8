# What scripts/bench measures of animations: speed beside gif2webp and vips; bytes and likeness beside gif2webp and gifsicle.

bench_animation() {
    local out="$state/out.d" gif=$bench/sources/a.gif
    # A pan over a photograph: every frame differs everywhere, as in a film.
    if [ ! -s "$gif" ]; then
        local i frames=()
        for i in $(seq 0 19); do
            vips crop "$bench/sources/a.png" "$state/f$i.png" $((i * 12)) $((i * 6)) 480 360
            frames+=("$state/f$i.png")
        done
        convert -delay 8 -loop 0 "${frames[@]}" "$gif"
    fi
    copies "$gif" gif 20
    one "20-frame GIF to animated WebP, q80: gif2webp" 20 "x,webp,q80" \
        "xargs -I{} gif2webp -quiet -lossy -q 80 {} -o '$out/{}.webp'"
    copies "$gif" gif 20
    one "20-frame GIF to animated WebP, q80: vips" 20 "x,webp,q80" \
        "xargs -I{} vips webpsave '{}[n=-1]' '$out/{}.webp' --Q 80 --strip"
}

# film NAME: 20 frames that move in one of three ways, as a GIF whose name is printed.
film() {
    local name=$1 gif=$bench/sources/$1.gif i frames=() photo=$bench/sources/a.png
    if [ ! -s "$gif" ]; then
        for i in $(seq 0 19); do
            local frame=$state/f$i.png
            case $name in
            pan) vips crop "$photo" "$frame" $((i * 12)) $((i * 6)) 480 360 ;;
            noisy) convert "$photo" -crop "$((640 - i * 12))x$((480 - i * 9))+$((200 + i * 6))+$((150 + i * 5))" +repage \
                -resize '400x300!' -seed "$i" -attenuate 0.1 +noise Gaussian "$frame" ;;
            drawn) convert -size 400x300 gradient:skyblue-white -fill green -draw 'rectangle 0,220 400,300' \
                -fill red -stroke black -strokewidth 3 -draw "circle $((20 + i * 15)),150 $((50 + i * 15)),150" "$frame" ;;
            esac
            frames+=("$frame")
        done
        convert -delay 8 -loop 0 "${frames[@]}" "$gif"
    fi
    echo "$gif"
}

# likeness FILE REFERENCE: dB of all frames together, against frames that have all their colours.
likeness() {
    rm -rf "$state/seen"
    mkdir -p "$state/seen"
    convert "$1" -coalesce -background black -alpha remove "$state/seen/%02d.png"
    local frame
    for frame in "$2"/*.png; do
        { compare -metric MSE "$state/seen/$(basename "$frame")" "$frame" null: 2>&1 || true; } | sed 's/.*(\(.*\))/\1\n/'
    done | awk 'NF { s += $1; n++ } END { printf "%.1f", -10 * log(s / n) / log(10) }'
}

# animations: makes what the films are cut from.
animations() {
    mkdir -p "$bench/sources"
    photographs "$bench/photographs"
    [ -s "$bench/sources/a.png" ] ||
        vips thumbnail "$bench/photographs/Dune.jpg" "$bench/sources/a.png[strip]" 1600 --height 1200 --size both --crop centre
}

# wanted FILE SIZE: the frames in full colour, as they should come out, in $state/wanted.
wanted() {
    rm -rf "$state/wanted"
    mkdir -p "$state/wanted"
    convert "$1" -coalesce -filter Lanczos -resize "$2!" -background black -alpha remove "$state/wanted/%02d.png"
}

# half FILE: half of its size, as WIDTHxHEIGHT.
half() { identify -format '%w %h\n' "$1[0]" | head -1 | awk '{ printf "%dx%d", $1 / 2, $2 / 2 }'; }

# made FILE VARIANT...: the variants of a file, by the worker; ours NAME is then the path of one.
made() {
    local file=$1 name
    name=$(basename "$file")
    rm -rf "$WORKER_DB" "$WORKER_DB-wal" "$WORKER_DB-shm" "$WORKER_CACHE" "$state/one"
    mkdir -p "$state/one"
    cp "$file" "$state/one/"
    serve "$state/one" "$state"
    "$worker" enqueue "$origin_url/$name" "${@:2}" >/dev/null
    "$worker" run --drain --quiet --allow-addresses loopback >/dev/null
    stop_serving
}

ours() { echo "$WORKER_CACHE/$(sqlite3 "$WORKER_DB" "SELECT path FROM results WHERE variant = '$1'")"; }

# beside TITLE FORMAT OURS PEER THEIRS: bytes and likeness of both.
beside() {
    printf '  %-28s worker %8d bytes, %s dB   %s %8d bytes, %s dB\n' "$1" "$(stat -c %s "$3")" \
        "$(likeness "$2:$3" "$state/wanted")" "$4" "$(stat -c %s "$5")" "$(likeness "$2:$5" "$state/wanted")"
}

# Bytes and likeness of scaled GIFs, beside gifsicle's of as many colours.
bench_gif() {
    local name gif size colours theirs=$state/theirs.gif
    animations
    echo
    echo "GIFs at half their size: bytes, and likeness to frames in full colour"
    for name in pan noisy drawn; do
        gif=$(film "$name")
        size=$(half "$gif")
        wanted "$gif" "$size"
        made "$gif" --variant "v256=$size,fill,gif" --variant "v32=$size,fill,gif,colours:32" --variant "v8=$size,fill,gif,colours:8"
        for colours in 256 32 8; do
            gifsicle -O3 --resize "$size" --resize-method lanczos3 --colors $colours "$gif" -o "$theirs" 2>/dev/null
            beside "$name, $colours colours" gif "$(ours v$colours)" gifsicle "$theirs"
        done
    done
}

# Bytes and likeness of animated WebPs beside gif2webp's, which can't scale: gifsicle does it for it. And the way back.
bench_webp() {
    local name gif size setting theirs=$state/theirs.webp small=$state/small.gif
    animations
    echo
    echo "Animated WebPs from GIFs, as large as they are and at half their size, and GIFs from WebPs"
    for name in pan noisy drawn; do
        gif=$(film "$name")
        size=$(half "$gif")
        made "$gif" --variant "q80=x,webp,q80" --variant "q50=x,webp,q50" --variant "lossless=x,webp,lossless" \
            --variant "half=$size,fill,webp,q80"
        wanted "$gif" 100%
        for setting in q80 q50 lossless; do
            case $setting in
            lossless) gif2webp -quiet "$gif" -o "$theirs" ;;
            *) gif2webp -quiet -lossy -q "${setting#q}" "$gif" -o "$theirs" ;;
            esac
            beside "$name, $setting" webp "$(ours "$setting")" gif2webp "$theirs"
        done
        wanted "$gif" "$size"
        gifsicle -O3 --resize "$size" --resize-method lanczos3 --colors 256 "$gif" -o "$small" 2>/dev/null
        gif2webp -quiet -lossy -q 80 "$small" -o "$theirs"
        beside "$name, half, q80" webp "$(ours half)" gif2webp "$theirs"
        back "$name" "$gif" "$size"
    done
}

# back NAME GIF SIZE: a WebP to a GIF of half its size, beside ImageMagick and gifsicle.
back() {
    local film=$state/film.webp theirs=$state/theirs.gif
    gif2webp -quiet -lossy -q 90 "$2" -o "$film"
    wanted "webp:$film" "$3"
    made "$film" --variant "back=$3,fill,gif"
    convert "webp:$film" -coalesce -filter Lanczos -resize "$3!" "$theirs"
    gifsicle --batch -O3 "$theirs" 2>/dev/null
    beside "$1, from WebP to GIF, half" gif "$(ours back)" "convert and gifsicle" "$theirs"
}
