#pragma once

// zlib as it is, but for a macro. Reference: https://zlib.net/manual.html
#include <zlib.h>

static inline int pw_inflate_init(z_stream *stream) { return inflateInit(stream); }
