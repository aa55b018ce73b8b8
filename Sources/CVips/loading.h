#pragma once

// Files in memory, and loaders. Included by shim.h, which says why these functions exist.

#include <math.h>
#include <vips/vips.h>

#pragma clang assume_nonnull begin

// --- A file in memory whose last bytes are handed out a few at a time ------------------------------------------------

typedef struct {
    const char *bytes;
    gint64 real, count, slow, position;
} pw_vips_memory;

enum { PW_VIPS_SLOW_STEP = 32 };

static inline gint64 pw_vips_memory_read(VipsSourceCustom *source, void *buffer, gint64 length, gpointer data) {
    (void) source;
    pw_vips_memory *memory = data;
    gint64 before = memory->slow - memory->position;
    gint64 most = before > 0 ? before : PW_VIPS_SLOW_STEP;
    gint64 read = MIN(MIN(length, most), memory->count - memory->position);
    if (memory->position < memory->real) {
        read = MIN(read, memory->real - memory->position);
        memcpy(buffer, memory->bytes + memory->position, (size_t) read);
    } else {
        static const char end_mark[] = {(char) 0xFF, (char) 0xD9};
        memcpy(buffer, end_mark + (memory->position - memory->real), (size_t) read);
    }
    memory->position += read;
    return read;
}

static inline gint64 pw_vips_memory_seek(VipsSourceCustom *source, gint64 offset, int whence, gpointer data) {
    (void) source;
    pw_vips_memory *memory = data;
    gint64 start = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? memory->position : memory->count;
    if (start + offset < 0 || start + offset > memory->count) {
        return -1;
    }
    return memory->position = start + offset;
}

static inline void pw_vips_memory_free(gpointer data, GClosure *_Nullable closure) {
    (void) closure;
    g_free(data);
}

// From offset `slow` on, a read delivers at most PW_VIPS_SLOW_STEP bytes, so that a loader's read position shows how
// many bytes it needed. With `adds_end`, the two bytes of a JPEG's end mark follow the file's bytes.
static inline VipsSource *_Nullable pw_vips_source_new(
    const void *_Nullable bytes, size_t count, size_t slow, gboolean adds_end
) {
    VipsSourceCustom *source = vips_source_custom_new();
    if (source == NULL) {
        return NULL;
    }
    pw_vips_memory *memory = g_new0(pw_vips_memory, 1);
    *memory = (pw_vips_memory) {.bytes = (const char *) bytes, .real = (gint64) count,
        .count = (gint64) count + (adds_end ? 2 : 0), .slow = (gint64) slow};
    g_signal_connect_data(source, "read", G_CALLBACK(pw_vips_memory_read), memory, pw_vips_memory_free, 0);
    g_signal_connect(source, "seek", G_CALLBACK(pw_vips_memory_seek), memory);
    return VIPS_SOURCE(source);
}

// --- Loading: the header now, pixels as they are asked for, from top to bottom --------------------------------------

static inline int pw_vips_load_jpeg(
    VipsSource *source, VipsImage *_Nullable *_Nonnull out, int shrink, gboolean lenient
) {
    return vips_jpegload_source(source, out, "shrink", shrink, "access", VIPS_ACCESS_SEQUENTIAL,
        "fail_on", lenient ? VIPS_FAIL_ON_NONE : VIPS_FAIL_ON_ERROR, NULL);
}

// libvips decodes a WebP as a whole. Without "memory" it would write more than 100 MB of pixels to a temporary file,
// which a helper can't create.
static inline int pw_vips_load_webp(VipsSource *source, VipsImage *_Nullable *_Nonnull out, double scale) {
    return vips_webpload_source(source, out, "scale", scale, "memory", TRUE,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

static inline int pw_vips_load_png(VipsSource *source, VipsImage *_Nullable *_Nonnull out, gboolean lenient) {
    return vips_pngload_source(source, out, "access", VIPS_ACCESS_SEQUENTIAL,
        "fail_on", lenient ? VIPS_FAIL_ON_NONE : VIPS_FAIL_ON_ERROR, NULL);
}

static inline int pw_vips_load_gif(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_gifload_source(source, out, "page", 0, "n", 1,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

static inline int pw_vips_load_tiff(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_tiffload_source(source, out, "page", 0, "n", 1,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

// Loads the picture and not its embedded thumbnail, which may show something else.
static inline int pw_vips_load_heif(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_heifload_source(source, out, "thumbnail", FALSE,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

static inline int pw_vips_load_jxl(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_jxlload_source(source, out, "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

#pragma clang assume_nonnull end
