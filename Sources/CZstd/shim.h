#pragma once

// libzstd's streaming decompression, as it is. Reference: https://facebook.github.io/zstd/zstd_manual.html
#include <zstd.h>
