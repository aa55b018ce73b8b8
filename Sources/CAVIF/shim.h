#pragma once

// Why libavif is called and not libvips: libvips 8.14 and libheif 1.15 read and write only the default picture of an
// AVIF. libavif reads and writes its tracks, frame by frame.
// Reference: https://github.com/AOMediaCodec/libavif/blob/v0.11.1/include/avif/avif.h

#include <avif/avif.h>

// The header gives these no nullability, so Swift sees every pointer as one that may be null.
