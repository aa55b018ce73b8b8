#pragma once

// Why this header exists: almost every libvips operation is variadic (optional arguments as name, value, …, NULL), and
// Swift calls neither variadic functions nor function-like macros. Each function of these headers is one call of fixed
// arity, with the options this project uses. Each returns 0 or −1 and leaves its words in libvips' error buffer.
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

#pragma clang assume_nonnull end
