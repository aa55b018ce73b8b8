#pragma once

// Operations on pictures. Included by shim.h, which says why these functions exist.

#include <math.h>
#include <vips/vips.h>

#pragma clang assume_nonnull begin

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

// Rounds to the nearest whole number, since a cast alone truncates. Values beyond the format's range are clipped to it.
static inline int pw_vips_round(VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsBandFormat format) {
    VipsImage *raised = NULL;
    int result = -1;
    if (vips_linear1(in, &raised, 1, 0.5, NULL) == 0) {
        result = vips_cast(raised, out, format, NULL);
    }
    g_clear_object(&raised);
    return result;
}

// Rotates and mirrors the picture by its orientation tag, and removes the tag.
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

// Converts CMYK to sRGB of eight bits, with the light that the inks leave: (255 - ink) * (255 - black) / 255.
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

// Multiplies by `factor` and converts to sixteen bits; values beyond the range are clipped to it.
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

// Unpacks CIELAB of 32 bits a pixel (LABQ) to three channels.
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

// `colour` has four numbers from 0 to 255; as many of them are used as the picture has channels.
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

// Rotates clockwise. If the picture has an alpha, picture and colour must be premultiplied; vips_rotate would
// premultiply them again.
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

// libvips' defaults cut the Gaussian off at a fifth of its height and round it to twentieths: a quarter of the blur is
// lost, and all of it below a sigma of 0.6.
static inline int pw_vips_blur(VipsImage *in, VipsImage *_Nullable *_Nonnull out, double sigma) {
    return vips_gaussblur(in, out, sigma, "min_ampl", 0.003, "precision", VIPS_PRECISION_FLOAT, NULL);
}

static inline int pw_vips_sharpen(VipsImage *in, VipsImage *_Nullable *_Nonnull out, double sigma, double amount) {
    return vips_sharpen(in, out, "sigma", sigma, "m2", amount, NULL);
}

static inline int pw_vips_invert(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_invert(in, out, NULL);
}

// Multiplies every channel by `factor`, adds `offset`, and clips the result to a byte.
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

// Multiplies three channels by the 3×3 matrix `nine`, and adds a constant to each.
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

// Draws `over` on the picture, with its top left corner at x, y.
static inline int pw_vips_composite(
    VipsImage *in, VipsImage *_Nullable *_Nonnull out, VipsImage *over, int x, int y
) {
    return vips_composite2(in, over, out, VIPS_BLEND_MODE_OVER, "x", x, "y", y,
        "compositing_space", VIPS_INTERPRETATION_sRGB, NULL);
}

static inline int pw_vips_copy(VipsImage *in, VipsImage *_Nullable *_Nonnull out) {
    return vips_copy(in, out, NULL);
}

#pragma clang assume_nonnull end
