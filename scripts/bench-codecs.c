/* What the codecs alone take: each JPEG named on standard input is decoded by libjpeg at the smallest scale that is at least
 * WIDTH wide, and the picture's first WIDTH columns are encoded by libwebp with quality 80. There is no resampling, no network
 * and no disk: no program that makes the same files with these libraries can take less CPU.
 *
 *   bench-codecs WIDTH… <FILES     prints the number of pictures, and milliseconds of CPU for each
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>
#include <webp/encode.h>

static unsigned char *contents(const char *path, unsigned long *size) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) { perror(path); exit(1); }
    *size = (unsigned long)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size);
    if (!bytes || fread(bytes, 1, *size, file) != *size) { perror(path); exit(1); }
    fclose(file);
    return bytes;
}

static unsigned char *decode(const unsigned char *bytes, unsigned long size, unsigned least, int *width, int *height) {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, bytes, size);
    jpeg_read_header(&jpeg, TRUE);
    jpeg.scale_denom = 8;
    for (jpeg.scale_num = 1; jpeg.scale_num < 8; jpeg.scale_num++) {
        jpeg_calc_output_dimensions(&jpeg);
        if (jpeg.output_width >= least) break;
    }
    jpeg.out_color_space = JCS_RGB;
    jpeg_start_decompress(&jpeg);
    *width = (int)jpeg.output_width;
    *height = (int)jpeg.output_height;
    unsigned char *pixels = malloc((size_t)*width * (size_t)*height * 3);
    while (jpeg.output_scanline < jpeg.output_height) {
        unsigned char *row = pixels + (size_t)jpeg.output_scanline * (size_t)*width * 3;
        jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    jpeg_destroy_decompress(&jpeg);
    return pixels;
}

static void encode(const unsigned char *pixels, int stride, int width, int height) {
    WebPConfig config;
    WebPPicture picture;
    WebPMemoryWriter writer;
    if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, 80) || !WebPPictureInit(&picture)) exit(1);
    WebPMemoryWriterInit(&writer);
    picture.width = width;
    picture.height = height;
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = &writer;
    if (!WebPPictureImportRGB(&picture, pixels, stride) || !WebPEncode(&config, &picture)) exit(1);
    WebPPictureFree(&picture);
    WebPMemoryWriterClear(&writer);
}

int main(int count, char **arguments) {
    char path[4096];
    int pictures = 0;
    double nanoseconds = 0;
    while (fgets(path, sizeof path, stdin)) {
        path[strcspn(path, "\n")] = 0;
        unsigned long size;
        unsigned char *bytes = contents(path, &size);
        struct timespec begun, ended;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begun);
        for (int index = 1; index < count; index++) {
            int wanted = atoi(arguments[index]), width, height;
            unsigned char *pixels = decode(bytes, size, (unsigned)wanted, &width, &height);
            /* As high as the scaled picture would be. */
            encode(pixels, width * 3, wanted < width ? wanted : width, wanted < width ? height * wanted / width : height);
            free(pixels);
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
        nanoseconds += (double)(ended.tv_sec - begun.tv_sec) * 1e9 + (double)(ended.tv_nsec - begun.tv_nsec);
        free(bytes);
        pictures++;
    }
    if (pictures == 0) return 1;
    printf("%d %.3f\n", pictures, nanoseconds / 1e6 / pictures);
    return 0;
}
