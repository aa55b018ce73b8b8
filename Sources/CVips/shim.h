#pragma once

// Why this header exists: almost every libvips operation is variadic (optional arguments as name, value, …, NULL), and
// Swift calls neither variadic functions nor function-like macros. Each function of these headers is one call of fixed
// arity, with the options this project uses. Each returns 0, or −1 with a message in libvips' error buffer.
// Reference: https://www.libvips.org/API/8.14/

#include <math.h>
#include <vips/vips.h>

#include "loading.h"
#include "operations.h"
#include "saving.h"

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
    // libjpeg warns of this through libtiff, and fills the missing pixels with grey.
    if (text != NULL && data != NULL && strstr(text, "Corrupt JPEG data") != NULL) {
        __atomic_fetch_add((int *) data, 1, __ATOMIC_RELAXED);
    }
}

// Replaces GLib's log handler for libvips, which would write warnings to stderr. It counts the warnings of damaged JPEG
// data in `damages`, and drops all others. In C, since flag constants and C callbacks are clumsy in Swift.
static inline void pw_vips_silence_log(int *damages) {
    g_log_set_handler(
        "VIPS", (GLogLevelFlags) (G_LOG_LEVEL_WARNING | G_LOG_LEVEL_MESSAGE | G_LOG_LEVEL_INFO | G_LOG_LEVEL_DEBUG),
        pw_vips_swallow, damages);
}

static inline int pw_vips_load_count(const int *count) { return __atomic_load_n(count, __ATOMIC_RELAXED); }

// 1 if the class is blocked, 0 if not, −1 if there is no such class. vips_operation_block_set() silently ignores
// unknown names, so its result is read back from the class, which needs cast macros.
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

#pragma clang assume_nonnull end
