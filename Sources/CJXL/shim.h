#pragma once

#include <jxl/decode.h>
#include <jxl/encode.h>
#include <jxl/version.h>

// The profile of the pixels that are decoded. libjxl 0.9 dropped a parameter that was without use before.
// Reference: https://libjxl.readthedocs.io/en/latest/api_decoder.html

static inline JxlDecoderStatus pw_jxl_profile_size(const JxlDecoder *decoder, size_t *size) {
#if JPEGXL_NUMERIC_VERSION < JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
    return JxlDecoderGetICCProfileSize(decoder, NULL, JXL_COLOR_PROFILE_TARGET_DATA, size);
#else
    return JxlDecoderGetICCProfileSize(decoder, JXL_COLOR_PROFILE_TARGET_DATA, size);
#endif
}

static inline JxlDecoderStatus pw_jxl_profile(const JxlDecoder *decoder, uint8_t *profile, size_t size) {
#if JPEGXL_NUMERIC_VERSION < JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
    return JxlDecoderGetColorAsICCProfile(decoder, NULL, JXL_COLOR_PROFILE_TARGET_DATA, profile, size);
#else
    return JxlDecoderGetColorAsICCProfile(decoder, JXL_COLOR_PROFILE_TARGET_DATA, profile, size);
#endif
}
