#pragma once

// Why this header exists: almost every libvips operation is variadic (optional arguments as name, value, …, NULL), and
// Swift calls neither variadic functions nor function-like macros. Each function below is one libvips call of fixed
// arity, with the options this project uses. Each returns 0 or −1 and leaves its words in libvips' error buffer.
// Reference: https://www.libvips.org/API/8.14/

#include <vips/vips.h>

#pragma clang assume_nonnull begin

// --- Starting up ---------------------------------------------------------------------------------------------------

// VIPS_INIT is a macro that checks the ABI as well.
static inline int pw_vips_init(const char *name) {
    return VIPS_INIT(name);
}

static inline void pw_vips_swallow(
    const gchar *_Nullable domain, GLogLevelFlags level, const gchar *_Nullable text, gpointer _Nullable data
) {
    (void) domain, (void) level, (void) text, (void) data;
}

// Warnings of libvips go to GLib's log, which writes to stderr; flag constants and C callbacks are clumsy from Swift.
static inline void pw_vips_silence_log(void) {
    g_log_set_handler(
        "VIPS", (GLogLevelFlags) (G_LOG_LEVEL_WARNING | G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_INFO | G_LOG_LEVEL_DEBUG),
        pw_vips_swallow, NULL);
}

// 1 = blocked, 0 = open, −1 = there is no such class. vips_operation_block_set() ignores unknown names without a word,
// so what it did has to be read back from the class, which takes cast macros.
static inline int pw_vips_is_blocked(const char *class_name) {
    GType type = g_type_from_name(class_name);
    if (type == 0 || !g_type_is_a(type, VIPS_TYPE_OPERATION)) {
        return -1;
    }
    gpointer class = g_type_class_ref(type);
    int blocked = (VIPS_OPERATION_CLASS(class)->flags & VIPS_OPERATION_BLOCKED) != 0;
    g_type_class_unref(class);
    return blocked;
}

// --- Loading: the header now, pixels as they are asked for, from top to bottom --------------------------------------

static inline int pw_vips_load_jpeg(VipsSource *source, VipsImage *_Nullable *_Nonnull out, int shrink) {
    return vips_jpegload_source(source, out, "shrink", shrink,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

static inline int pw_vips_load_webp(VipsSource *source, VipsImage *_Nullable *_Nonnull out, double scale) {
    return vips_webpload_source(source, out, "scale", scale,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

static inline int pw_vips_load_png(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_pngload_source(source, out,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

static inline int pw_vips_load_gif(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_gifload_source(source, out, "page", 0, "n", 1,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

static inline int pw_vips_load_tiff(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_tiffload_source(source, out, "page", 0, "n", 1,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

// Not the thumbnail a camera put in: it may show something else.
static inline int pw_vips_load_heif(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_heifload_source(source, out, "thumbnail", FALSE,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

// --- Operations ----------------------------------------------------------------------------------------------------

static inline int pw_vips_resize(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, double horizontal, double vertical
) {
    return vips_resize(in, out, horizontal, "vscale", vertical, NULL);
}

static inline int pw_vips_premultiply(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_premultiply(in, out, NULL);
}

static inline int pw_vips_unpremultiply(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_unpremultiply(in, out, NULL);
}

static inline int pw_vips_cast(VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsBandFormat format) {
    return vips_cast(in, out, format, NULL);
}

// Turns and mirrors as the orientation tag says, and takes the tag off.
static inline int pw_vips_autorot(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_autorot(in, out, NULL);
}

static inline int pw_vips_icc_to_srgb(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_icc_transform(in, out, "srgb", "embedded", TRUE, "depth", 8, NULL);
}

static inline int pw_vips_colourspace(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsInterpretation interpretation
) {
    return vips_colourspace(in, out, interpretation, NULL);
}

static inline int pw_vips_first_bands(VipsImage *in, VipsImage *_Nullable *_Nonnull out, int count) {
    return vips_extract_band(in, out, 0, "n", count, NULL);
}

static inline int pw_vips_crop(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, int left, int top, int width, int height
) {
    return vips_extract_area(in, out, left, top, width, height, NULL);
}

static inline int pw_vips_add_alpha(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_addalpha(in, out, NULL);
}

// The new border is white, or all zeros (with an alpha: transparent).
static inline int pw_vips_pad(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, int left, int top, int width, int height, gboolean white
) {
    return vips_embed(in, out, left, top, width, height,
        "extend", white ? VIPS_EXTEND_WHITE : VIPS_EXTEND_BLACK, NULL);
}

static inline int pw_vips_flatten_on_white(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    VipsArrayDouble *white = vips_array_double_newv(1, 255.0);
    int result = vips_flatten(in, out, "background", white, NULL);
    vips_area_unref(VIPS_AREA(white));
    return result;
}

// --- Saving: without metadata (WebP is left to libwebp: webpsave of 8.14 ignores "strip") ---------------------------------------------------------------------------------------

static inline int pw_vips_save_jpeg(VipsImage *in, VipsTarget *target, int quality) {
    return vips_jpegsave_target(in, target, "Q", quality, "strip", TRUE, NULL);
}

static inline int pw_vips_save_png(VipsImage *in, VipsTarget *target) {
    return vips_pngsave_target(in, target, "strip", TRUE, NULL);
}

static inline int pw_vips_save_avif(VipsImage *in, VipsTarget *target, int quality) {
    return vips_heifsave_target(in, target, "Q", quality, "compression", VIPS_FOREIGN_HEIF_COMPRESSION_AV1,
        "strip", TRUE, NULL);
}

// --- Lines of pixels -------------------------------------------------------------------------------------------------

// VIPS_REGION_ADDR is a macro.
static inline const unsigned char *_Nullable pw_vips_region_row(VipsRegion *region, int line) {
    return VIPS_REGION_ADDR(region, 0, line);
}

// The fields are the struct's own, and assigning them from Swift would need its layout to be stable.
static inline void pw_vips_set_size(VipsImage *image, int width, int height) {
    image->Xsize = width;
    image->Ysize = height;
}

#pragma clang assume_nonnull end
