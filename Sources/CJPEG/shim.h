#pragma once

// libjpeg-turbo's error handling takes setjmp and a table of functions, which Swift can't do.
// Reference: https://github.com/libjpeg-turbo/libjpeg-turbo/blob/2.1.x/libjpeg.txt, "Error handling"
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>

// Room for a message of libjpeg.
enum { PW_JPEG_MESSAGE_MAX = JMSG_LENGTH_MAX };

typedef struct {
    struct jpeg_error_mgr base;  // libjpeg hands out its address as that of the whole
    jmp_buf leave;
    const unsigned char *begin, *end;  // of the file
    boolean has_ended_early;  // libjpeg has made up an end mark
    boolean is_damaged;
    char *message;  // the first damage's
} pw_jpeg_errors;

// Whether the bytes that the decoder skipped are padding: few, or all alike. Otherwise the decoder has lost its place
// in the data before them. Bytes before the first scan are no picture data, so they count as padding.
static inline boolean pw_jpeg_is_padding(j_decompress_ptr decoder) {
    pw_jpeg_errors *errors = (pw_jpeg_errors *)decoder->err;
    // The first number in the message: how many bytes were skipped.
    ptrdiff_t count = decoder->err->msg_parm.i[0];
    if (decoder->input_scan_number == 0 || count <= 16) {
        return TRUE;
    }
    // After the file's end libjpeg reads an end mark of its own, which is elsewhere in memory.
    const unsigned char *next = decoder->src->next_input_byte;
    if (next < errors->begin || next > errors->end) {
        next = errors->end;
    }
    if (count > next - errors->begin) {
        return FALSE;
    }
    for (ptrdiff_t n = 2; n <= count; n++) {
        if (next[-n] != next[-1]) {
            return FALSE;
        }
    }
    return TRUE;
}

static inline void pw_jpeg_emit(j_common_ptr common, int level) {
    pw_jpeg_errors *errors = (pw_jpeg_errors *)common->err;
    if (level >= 0 || errors->is_damaged) {
        return;  // a trace, or no news
    }
    switch (errors->base.msg_code) {
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
        return;  // they change no pixel
    case JWRN_BOGUS_PROGRESSION:
        return;  // an encoder's odd order of scans; data that are missing are warned of besides
    case JWRN_EXTRANEOUS_DATA:
        if (pw_jpeg_is_padding((j_decompress_ptr)common)) {
            return;
        }
        break;
    case JWRN_JPEG_EOF:
        // libjpeg's bit reader looks ahead, so this warning alone does not mean damage. Missing data cause another
        // warning, except for whole scans: see pw_jpeg_has_all_scans.
        errors->has_ended_early = TRUE;
        return;
    }
    errors->is_damaged = TRUE;
    errors->base.format_message(common, errors->message);
}

static inline void pw_jpeg_fail(j_common_ptr common) {
    pw_jpeg_errors *errors = (pw_jpeg_errors *)common->err;
    if (!errors->is_damaged) {
        errors->is_damaged = TRUE;
        errors->base.format_message(common, errors->message);
    }
    longjmp(errors->leave, 1);
}

// Whether all scans of the picture have come; for a progressive JPEG, each coefficient to its last bit.
static inline boolean pw_jpeg_has_all_scans(j_decompress_ptr decoder) {
    for (int n = 0; n < decoder->num_components; n++) {
        if (decoder->comp_info[n].quant_table == NULL) {
            return FALSE;  // nothing of this component has come
        }
        for (int k = 0; decoder->coef_bits != NULL && decoder->progressive_mode && k < DCTSIZE2; k++) {
            if (decoder->coef_bits[n][k] != 0) {
                return FALSE;
            }
        }
    }
    return TRUE;
}

// Decodes all data of a JPEG at an eighth of its size, and drops the pixels. Returns 1 if libjpeg found damage; then
// `message`, of PW_JPEG_MESSAGE_MAX bytes, has libjpeg's message.
static inline int pw_jpeg_is_damaged(const unsigned char *bytes, size_t count, char *message) {
    pw_jpeg_errors errors = {.begin = bytes, .end = bytes + count, .message = message};
    struct jpeg_decompress_struct decoder;
    decoder.err = jpeg_std_error(&errors.base);
    errors.base.emit_message = pw_jpeg_emit;
    errors.base.error_exit = pw_jpeg_fail;
    jpeg_create_decompress(&decoder);
    if (!setjmp(errors.leave)) {
        jpeg_mem_src(&decoder, bytes, count);
        jpeg_read_header(&decoder, TRUE);
        decoder.scale_num = 1;
        decoder.scale_denom = 8;
        decoder.dct_method = JDCT_IFAST;
        decoder.do_fancy_upsampling = FALSE;
        decoder.out_color_space = decoder.jpeg_color_space;
        jpeg_start_decompress(&decoder);
        JSAMPARRAY row = decoder.mem->alloc_sarray((j_common_ptr)&decoder, JPOOL_IMAGE,
            decoder.output_width * (JDIMENSION)decoder.output_components, 1);
        while (decoder.output_scanline < decoder.output_height && !errors.is_damaged) {
            jpeg_read_scanlines(&decoder, row, 1);
        }
        if (!errors.is_damaged) {
            jpeg_finish_decompress(&decoder);
        }
        if (!errors.is_damaged && errors.has_ended_early && !pw_jpeg_has_all_scans(&decoder)) {
            errors.is_damaged = TRUE;
            strcpy(message, "Scans are missing at its end");
        }
    }
    jpeg_destroy_decompress(&decoder);
    return errors.is_damaged;
}

// A source that ends without an end mark, so that the rows that libjpeg delivers before the end are final.
static inline void pw_jpeg_no_more(j_decompress_ptr decoder) { (void)decoder; }
static inline boolean pw_jpeg_suspend(j_decompress_ptr decoder) {
    (void)decoder;
    return FALSE;
}
static inline void pw_jpeg_skip(j_decompress_ptr decoder, long count) {
    size_t left = decoder->src->bytes_in_buffer;
    size_t skipped = count <= 0 ? 0 : (size_t)count < left ? (size_t)count : left;
    decoder->src->next_input_byte += skipped;
    decoder->src->bytes_in_buffer -= skipped;
}

// The number of rows from the top that the first bytes of a JPEG with one scan contain; 0 for a JPEG with several
// scans, whose rows are complete only at its end.
static inline long pw_jpeg_rows(const unsigned char *bytes, size_t count) {
    char message[PW_JPEG_MESSAGE_MAX];
    pw_jpeg_errors errors = {.begin = bytes, .end = bytes + count, .message = message};
    struct jpeg_source_mgr source = {
        .next_input_byte = bytes, .bytes_in_buffer = count, .init_source = pw_jpeg_no_more,
        .fill_input_buffer = pw_jpeg_suspend, .skip_input_data = pw_jpeg_skip,
        .resync_to_restart = jpeg_resync_to_restart, .term_source = pw_jpeg_no_more,
    };
    struct jpeg_decompress_struct decoder;
    volatile long rows = 0;
    decoder.err = jpeg_std_error(&errors.base);
    errors.base.emit_message = pw_jpeg_emit;
    errors.base.error_exit = pw_jpeg_fail;
    jpeg_create_decompress(&decoder);
    if (!setjmp(errors.leave)) {
        decoder.src = &source;
        if (jpeg_read_header(&decoder, TRUE) == JPEG_HEADER_OK && !jpeg_has_multiple_scans(&decoder)) {
            decoder.scale_num = 1;
            decoder.scale_denom = 8;
            decoder.dct_method = JDCT_IFAST;
            decoder.do_fancy_upsampling = FALSE;
            decoder.out_color_space = decoder.jpeg_color_space;
            if (jpeg_start_decompress(&decoder)) {
                JSAMPARRAY row = decoder.mem->alloc_sarray((j_common_ptr)&decoder, JPOOL_IMAGE,
                    decoder.output_width * (JDIMENSION)decoder.output_components, 1);
                while (decoder.output_scanline < decoder.output_height && jpeg_read_scanlines(&decoder, row, 1) == 1) {
                    rows = (long)decoder.output_scanline * 8;
                }
                if (rows > (long)decoder.image_height) {
                    rows = (long)decoder.image_height;
                }
            }
        }
    }
    jpeg_destroy_decompress(&decoder);
    return rows;
}
