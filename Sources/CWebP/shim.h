#pragma once

// Only for the version of the encoder, which belongs to the identity of every WebP rendition: libvips finds libwebp at
// run time, and its own version says nothing of it.
#include <webp/encode.h>
