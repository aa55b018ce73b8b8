#pragma once

// zlib's inflate for content codings: what Swift cannot call is a macro. Reference: https://zlib.net/manual.html
#include <zlib.h>

// A window of 31 expects gzip, 15 zlib, -15 neither's header.
static inline int cinflate_init(z_stream *_Nonnull stream, int window) { return inflateInit2(stream, window); }
