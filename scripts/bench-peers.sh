# shellcheck shell=bash
# A part of scripts/bench: the main job of img2dataset and of scrapy's image pipeline, from PyPI in an environment of their own.

# Scrapy's pipeline stores each picture again as a JPEG and its thumbnail as a JPEG; it has no setting for WebP.
scrapy_spider() {
    cat <<'PYTHON'
import sys
import scrapy
from scrapy.crawler import CrawlerProcess

urls, store = sys.argv[1:]


class Pictures(scrapy.Spider):
    name = "pictures"
    start_urls = ["data:,"]

    def parse(self, response):
        yield {"image_urls": open(urls).read().split()}


process = CrawlerProcess({
    "ITEM_PIPELINES": {"scrapy.pipelines.images.ImagesPipeline": 1}, "IMAGES_STORE": store,
    "IMAGES_THUMBS": {"v320": (320, 100000)}, "CONCURRENT_REQUESTS": 6, "CONCURRENT_REQUESTS_PER_DOMAIN": 6,
    "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False,
})
process.crawl(Pictures)
process.start()
PYTHON
}

img2dataset_run() {
    rm -rf "$state/img2dataset"
    NO_ALBUMENTATIONS_UPDATE=1 "$bench/venv/bin/img2dataset" --url_list "$state/urls.txt" --output_folder "$state/img2dataset" \
        --processes_count 2 --thread_count 6 --image_size 320 --resize_mode keep_ratio_largest --encode_format webp \
        --encode_quality 80 --output_format files
}

scrapy_run() {
    rm -rf "$state/scrapy"
    "$bench/venv/bin/python" "$state/spider.py" "$state/urls.txt" "$state/scrapy"
}

bench_peers() {
    local i peer walls cpus ratios made
    if [ ! -x "$bench/venv/bin/img2dataset" ] || [ ! -x "$bench/venv/bin/scrapy" ]; then
        echo "installing img2dataset and scrapy..." >&2
        python3 -m venv "$bench/venv" && "$bench/venv/bin/pip" install --quiet img2dataset scrapy pillow || {
            echo "peers: skipped, since img2dataset and scrapy can't be installed from PyPI" >&2
            return 0
        }
    fi
    prepare
    scrapy_spider >"$state/spider.py"
    variants=(--variant "v320=320x,webp,q80")
    echo
    echo "600 JPEGs of 1600x1200 to 320 px, beside programs of others ($("$bench/venv/bin/pip" list 2>/dev/null |
        awk '/^(img2dataset|Scrapy|scrapy) / { printf "%s%s %s", s, $1, $2; s = ", " }'))"
    for peer in img2dataset scrapy; do
        walls=() cpus=() ratios=()
        for i in $(seq "$runs"); do
            timed worker_run
            local ours=$wall
            timed "${peer}_run"
            walls+=("$wall") cpus+=("$cpu") ratios+=("$(ratio "$ours" "$wall")")
        done
        made=$(find "$state/$peer" \( -name '*.webp' -o -path '*/thumbs/v320/*.jpg' \) | wc -l)
        echo "  $peer $(median "${walls[@]}") s, $(median "${cpus[@]}") s CPU, $made of $images; the worker's ratio $(spread "${ratios[@]}")"
    done
    stop_serving
}

# The codecs alone, in one process, beside the CPU of the worker and its helpers.
bench_codecs() {
    local i floor sizes_of_row ours=() floors=() ratios=() flags
    read -ra flags <<<"$(pkg-config --cflags --libs libjpeg libwebp)"
    gcc -O2 -o "$state/codecs" scripts/bench-codecs.c "${flags[@]}"
    prepare
    echo
    echo "CPU an image, beside libjpeg and libwebp alone: no network, no disk, no resampling"
    for sizes_of_row in 320 "160 320 640"; do
        variants=() ours=() floors=() ratios=()
        for i in $sizes_of_row; do variants+=(--variant "v$i=${i}x,webp,q80"); done
        for i in $(seq "$runs"); do
            timed worker_run
            # Words, not one argument.
            # shellcheck disable=SC2086
            floor=$(find "$bench/images" -name '*.jpg' | "$state/codecs" $sizes_of_row | awk '{ print $2 }')
            cpu=$(awk -v c="$cpu" -v n="$images" 'BEGIN { print c * 1000 / n }')
            ours+=("$cpu") floors+=("$floor") ratios+=("$(ratio "$cpu" "$floor")")
        done
        echo "  to $sizes_of_row px: worker $(median "${ours[@]}") ms, codecs $(median "${floors[@]}") ms, ratio $(spread "${ratios[@]}")"
    done
    stop_serving
}
