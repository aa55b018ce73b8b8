#pragma once

// Savers. Included by shim.h, which says why these functions exist.

#include <math.h>
#include <vips/vips.h>

#pragma clang assume_nonnull begin

// --- Saving. `strip` leaves out all metadata. ------------------------------------------------------------------------

static inline int pw_vips_save_jpeg(
    VipsImage *in, VipsTarget *target, int quality, gboolean progressive, VipsForeignSubsample chroma, gboolean strip
) {
    return vips_jpegsave_target(in, target, "Q", quality, "interlace", progressive, "optimize_coding", TRUE,
        "subsample_mode", chroma, "strip", strip, NULL);
}

// Without a palette if `bits` is 0.
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

// The bytes that were written to a target in memory, as a reference that the caller owns, or NULL. A saver ends its
// target, after which vips_target_steal() of 8.14 reads through a null pointer; g_object_get is variadic.
static inline VipsBlob *_Nullable pw_vips_target_blob(VipsTarget *target) {
    VipsBlob *blob = NULL;
    if (vips_target_end(target) == 0) {
        g_object_get(target, "blob", &blob, NULL);
    }
    return blob;
}

// The cast is a macro in C.
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
