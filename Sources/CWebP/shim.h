#pragma once

// Why libwebp is called and not libvips' webpsave: that one writes the source's EXIF, with where a photograph was
// taken, into every file, "strip" or not (8.14.1); and the version of the encoder belongs to a rendition's identity.
// Its animation decoder and encoder (libwebpdemux, libwebpmux, in the same package) work frame by frame.
// Reference: https://developers.google.com/speed/webp/docs/api

#include <webp/decode.h>
#include <webp/demux.h>
#include <webp/encode.h>
#include <webp/mux.h>

#pragma clang assume_nonnull begin

// WebPMemoryWrite is taken by its address, which Swift can't convert to the struct's nullable function pointer without
// a closure of the same type; the writer is best set here.
static inline void pw_webp_collect(WebPPicture *picture, WebPMemoryWriter *writer) {
    WebPMemoryWriterInit(writer);
    picture->writer = WebPMemoryWrite;
    picture->custom_ptr = writer;
}

#pragma clang assume_nonnull end
