#pragma once

// Why this header exists: almost every libvips operation is variadic (optional arguments as name, value, …, NULL), and
// Swift calls neither variadic functions nor function-like macros. Each function below is one libvips call of fixed
// arity, with the options this project uses. Each returns 0 or −1 and leaves its words in libvips' error buffer.
// Reference: https://www.libvips.org/API/8.14/

#include <math.h>
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
    (void) domain, (void) level;
    // libjpeg's words, by way of libtiff: it goes on with grey.
    if (text != NULL && data != NULL && strstr(text, "Corrupt JPEG data") != NULL) {
        __atomic_fetch_add((int *) data, 1, __ATOMIC_RELAXED);
    }
}

// Warnings of libvips go to GLib's log, which writes to stderr; flag constants and C callbacks are clumsy from Swift.
// Those of damaged JPEG data are counted in `damages`.
static inline void pw_vips_silence_log(int *damages) {
    g_log_set_handler(
        "VIPS", (GLogLevelFlags) (G_LOG_LEVEL_WARNING | G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_INFO | G_LOG_LEVEL_DEBUG),
        pw_vips_swallow, damages);
}

static inline int pw_vips_load_count(const int *count) { return __atomic_load_n(count, __ATOMIC_RELAXED); }

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

// From `slow` on no read delivers more than PW_VIPS_SLOW_STEP bytes, so that how far a loader read tells how much it
// needed. With `adds_end` two more follow: a JPEG's end mark.
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

// Its pixels come all at once: above 100 MB libvips would put them into a temporary file, which a helper can't make.
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

// Not the thumbnail a camera put in: it may show something else.
static inline int pw_vips_load_heif(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_heifload_source(source, out, "thumbnail", FALSE,
        "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
}

static inline int pw_vips_load_jxl(VipsSource *source, VipsImage *_Nullable *_Nonnull out) {
    return vips_jxlload_source(source, out, "access", VIPS_ACCESS_SEQUENTIAL, "fail_on", VIPS_FAIL_ON_ERROR, NULL);
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

// To whole numbers, the nearest: a cast alone cuts off. What doesn't fit is the largest there is.
static inline int pw_vips_round(VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsBandFormat format) {
    VipsImage *raised = NULL;
    int result = -1;
    if (vips_linear1(in, &raised, 1, 0.5, NULL) == 0) {
        result = vips_cast(raised, out, format, NULL);
    }
    g_clear_object(&raised);
    return result;
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

// Of cyan, magenta, yellow and black the light that is left, (255 - ink) * (255 - black) / 255, as sRGB of eight bits.
static inline int pw_vips_light_of_inks(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    VipsImage *steps[7] = {NULL};
    double most = in->BandFmt == VIPS_FORMAT_USHORT ? 65535 : 255;
    double factors[3] = {1 / most, 1 / most, 1 / most};
    double none[3] = {0.5, 0.5, 0.5};
    double scale[3] = {255 / most, 255 / most, 255 / most};
    int result = -1;
    if (vips_linear1(in, &steps[0], -1, most, NULL) == 0 &&
        vips_extract_band(steps[0], &steps[1], 0, "n", 3, NULL) == 0 &&
        vips_extract_band(steps[0], &steps[2], 3, NULL) == 0 &&
        vips_linear(steps[1], &steps[3], factors, (double[3]) {0, 0, 0}, 3, NULL) == 0 &&
        vips_multiply(steps[3], steps[2], &steps[4], NULL) == 0 &&
        vips_linear(steps[4], &steps[5], scale, none, 3, "uchar", TRUE, NULL) == 0) {
        result = vips_copy(steps[5], out, "interpretation", VIPS_INTERPRETATION_sRGB, NULL);
    }
    for (int n = 0; n < 7; n++) {
        g_clear_object(&steps[n]);
    }
    return result;
}

static inline int pw_vips_first_bands(VipsImage *in, VipsImage *_Nullable *_Nonnull out, int count) {
    return vips_extract_band(in, out, 0, "n", count, NULL);
}

// Sixteen bits of what is `factor` times as large; what doesn't fit is cut off.
static inline int pw_vips_to_sixteen_bits(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, double factor, VipsInterpretation interpretation
) {
    VipsImage *scaled = NULL;
    VipsImage *cut = NULL;
    int result = -1;
    if (vips_linear1(in, &scaled, factor, 0.5, NULL) == 0 && vips_cast(scaled, &cut, VIPS_FORMAT_USHORT, NULL) == 0) {
        result = vips_copy(cut, out, "interpretation", interpretation, NULL);
    }
    g_clear_object(&cut);
    g_clear_object(&scaled);
    return result;
}

// CIELAB of 32 bits a pixel, packed, as three numbers.
static inline int pw_vips_unpack_lab(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_LabQ2LabS(in, out, NULL);
}

static inline int pw_vips_average(VipsImage *in, double *average) {
    return vips_avg(in, average, NULL);
}

static inline int pw_vips_crop(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, int left, int top, int width, int height
) {
    return vips_extract_area(in, out, left, top, width, height, NULL);
}

static inline int pw_vips_add_alpha(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_addalpha(in, out, NULL);
}

// Colours are four numbers of 0 to 255, of which as many are used as the picture has channels.
static inline int pw_vips_pad(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, int left, int top, int width, int height, const double *colour
) {
    VipsArrayDouble *background = vips_array_double_new(colour, in->Bands);
    int result = vips_embed(in, out, left, top, width, height,
        "extend", VIPS_EXTEND_BACKGROUND, "background", background, NULL);
    vips_area_unref(VIPS_AREA(background));
    return result;
}

static inline int pw_vips_flatten(VipsImage *in, VipsImage *_Nullable *_Nonnull out, const double *colour) {
    VipsArrayDouble *background = vips_array_double_new(colour, in->Bands - 1);
    int result = vips_flatten(in, out, "background", background, NULL);
    vips_area_unref(VIPS_AREA(background));
    return result;
}

static inline int pw_vips_smartcrop(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, int width, int height, VipsInteresting interesting
) {
    return vips_smartcrop(in, out, width, height, "interesting", interesting, NULL);
}

static inline int pw_vips_rot(VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsAngle angle) {
    return vips_rot(in, out, angle, NULL);
}

// Clockwise, of a picture and a colour that are weighed by their alpha, if they have one: vips_rotate would weigh again.
static inline int pw_vips_rotate(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, double angle, const double *colour
) {
    VipsArrayDouble *background = vips_array_double_new(colour, in->Bands);
    VipsInterpolate *bicubic = vips_interpolate_new("bicubic");
    double across = cos(VIPS_RAD(angle));
    double down = sin(VIPS_RAD(angle));
    int result = vips_affine(in, out, across, -down, down, across, "interpolate", bicubic,
        "extend", VIPS_EXTEND_BACKGROUND, "background", background, "premultiplied", TRUE, NULL);
    g_object_unref(bicubic);
    vips_area_unref(VIPS_AREA(background));
    return result;
}

static inline int pw_vips_flip(VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsDirection direction) {
    return vips_flip(in, out, direction, NULL);
}

// libvips' own settings cut the bell off at a fifth of its height and round it to twentieths: a quarter of the blur is lost,
// all of it below a sigma of 0.6.
static inline int pw_vips_blur(VipsImage *in, VipsImage *_Nullable *_Nonnull out, double sigma) {
    return vips_gaussblur(in, out, sigma, "min_ampl", 0.003, "precision", VIPS_PRECISION_FLOAT, NULL);
}

static inline int pw_vips_sharpen(VipsImage *in, VipsImage *_Nullable *_Nonnull out, double sigma, double amount) {
    return vips_sharpen(in, out, "sigma", sigma, "m2", amount, NULL);
}

static inline int pw_vips_invert(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_invert(in, out, NULL);
}

// Every channel times `factor` plus `offset`, cut off to a byte.
static inline int pw_vips_linear(VipsImage *in, VipsImage *_Nullable *_Nonnull out, double factor, double offset) {
    return vips_linear1(in, out, factor, offset, "uchar", TRUE, NULL);
}

static inline int pw_vips_recomb(VipsImage *in, VipsImage *_Nullable *_Nonnull out, const double *nine) {
    VipsImage *matrix = vips_image_new_matrix_from_array(3, 3, nine, 9);
    if (!matrix) {
        return -1;
    }
    int result = vips_recomb(in, out, matrix, NULL);
    g_object_unref(matrix);
    return result;
}

// Of three channels: each becomes a sum of all, by a row of factors, and a constant.
static inline int pw_vips_mix(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, const double *nine, const double *constants
) {
    VipsImage *mixed = NULL;
    const double ones[3] = {1, 1, 1};
    int result = pw_vips_recomb(in, &mixed, nine);
    if (result == 0) {
        result = vips_linear(mixed, out, ones, constants, 3, NULL);
    }
    g_clear_object(&mixed);
    return result;
}

static inline int pw_vips_join_bands(VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsImage *more) {
    return vips_bandjoin2(in, more, out, NULL);
}

static inline int pw_vips_band(VipsImage *in, VipsImage *_Nullable *_Nonnull out, int band) {
    return vips_extract_band(in, out, band, NULL);
}

// `table` has an entry for each of the 256 values of a byte.
static inline int pw_vips_maplut(VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsImage *table) {
    return vips_maplut(in, out, table, NULL);
}

// `over` lies with its top left corner at x, y.
static inline int pw_vips_composite(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsImage *over, int x, int y
) {
    return vips_composite2(in, over, out, VIPS_BLEND_MODE_OVER, "x", x, "y", y,
        "compositing_space", VIPS_INTERPRETATION_sRGB, NULL);
}

static inline int pw_vips_copy(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_copy(in, out, NULL);
}

// --- Saving. `strip` leaves out all that is not pixels. ---------------------------------------------------------------

static inline int pw_vips_save_jpeg(
    VipsImage *in, VipsTarget *target, int quality, gboolean progressive, VipsForeignSubsample chroma, gboolean strip
) {
    return vips_jpegsave_target(in, target, "Q", quality, "interlace", progressive, "optimize_coding", TRUE,
        "subsample_mode", chroma, "strip", strip, NULL);
}

// `bits` of 0: no palette.
static inline int pw_vips_save_png(
    VipsImage *in, VipsTarget *target, gboolean progressive, int bits, int effort, gboolean strip
) {
    if (bits == 0) {
        return vips_pngsave_target(in, target, "interlace", progressive, "strip", strip, NULL);
    }
    return vips_pngsave_target(in, target, "interlace", progressive, "palette", TRUE, "bitdepth", bits,
        "effort", effort, "strip", strip, NULL);
}

// libpng chooses a filter for each row, or none.
static inline int pw_vips_save_png_frame(VipsImage *in, VipsTarget *target, gboolean filters) {
    return vips_pngsave_target(in, target, "strip", TRUE, "filter",
        filters ? VIPS_FOREIGN_PNG_FILTER_ALL : VIPS_FOREIGN_PNG_FILTER_NONE, NULL);
}

// AVIF and HEIC.
static inline int pw_vips_save_heif(
    VipsImage *in, VipsTarget *target, VipsForeignHeifCompression compression, int quality, int effort, gboolean lossless, VipsForeignSubsample chroma,
    gboolean strip
) {
    return vips_heifsave_target(in, target, "Q", quality, "compression", compression,
        "effort", effort, "lossless", lossless, "subsample_mode", chroma, "strip", strip, NULL);
}

static inline int pw_vips_save_jxl(
    VipsImage *in, VipsTarget *target, int quality, int effort, gboolean lossless, gboolean strip
) {
    return vips_jxlsave_target(in, target, "Q", quality, "effort", effort, "lossless", lossless, "strip", strip, NULL);
}

// What was written to a target in memory, with a reference of the caller's, or NULL. Savers end their target, and what
// vips_target_steal() would take is gone by then (8.14 reads through a null pointer); g_object_get is variadic.
static inline VipsBlob *_Nullable pw_vips_target_blob(VipsTarget *target) {
    VipsBlob *blob = NULL;
    if (vips_target_end(target) == 0) {
        g_object_get(target, "blob", &blob, NULL);
    }
    return blob;
}

// A cast that C does with a macro.
static inline void pw_vips_blob_unref(VipsBlob *blob) {
    vips_area_unref(VIPS_AREA(blob));
}

static inline int pw_vips_save_tiff(VipsImage *in, VipsTarget *target, gboolean strip) {
    return vips_tiffsave_target(in, target, "compression", VIPS_FOREIGN_TIFF_COMPRESSION_DEFLATE,
        "predictor", VIPS_FOREIGN_TIFF_PREDICTOR_HORIZONTAL, "strip", strip, NULL);
}

// Only where metadata stays: webpsave of 8.14.1 writes the EXIF block, "strip" or not.
static inline int pw_vips_save_webp(
    VipsImage *in, VipsTarget *target, int quality, int effort, gboolean lossless, gboolean near_lossless
) {
    return vips_webpsave_target(in, target, "Q", quality, "effort", effort, "lossless", lossless || near_lossless,
        "near_lossless", near_lossless, NULL);
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

static inline void pw_vips_set_srgb(VipsImage *image) {
    image->Type = VIPS_INTERPRETATION_sRGB;
}

#pragma clang assume_nonnull end
