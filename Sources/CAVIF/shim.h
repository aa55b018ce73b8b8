#pragma once

// Why libavif is called and not libvips: libvips 8.14 and libheif 1.15 read and write only the default picture of an
// AVIF. libavif reads and writes its tracks, frame by frame.
// Reference: https://github.com/AOMediaCodec/libavif/blob/v0.11.1/include/avif/avif.h

#include <avif/avif.h>

// Whether libavif writes edit lists: 1.0 and later do.
static inline int pw_avif_writes_lists(void) { return AVIF_VERSION >= 1000000; }

// Sets how often the frames are repeated after the first time; -1 is for ever. libavif 0.11 has no such setting.
static inline void pw_avif_set_repetitions(avifEncoder *encoder, int repetitions) {
#if AVIF_VERSION >= 1000000
    encoder->repetitionCount = repetitions;
#else
    (void)encoder;
    (void)repetitions;
#endif
}

// libavif's header has no nullability annotations, so Swift imports every pointer as an optional.
