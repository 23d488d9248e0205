/* The canvas and its PNG file. Everything is drawn with dv_picture_fill, which alone knows where the
 * canvas ends. */
#include <division/tools/picture.h>

#include "base/file.h"
#include "base/printable.h"
#include "base/status.h"
#include "report/font.h"

#include <spng.h>
#include <stdbool.h>
#include <stdlib.h>

_Static_assert(sizeof(dv_colour) == 3, "the canvas is given to the PNG encoder as bytes");

dv_status dv_picture_new(dv_picture *picture, size_t width, size_t height, dv_colour colour, dv_error *error) {
    if (picture == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "dv_picture_new: no picture: give one");
    *picture = (dv_picture){0};
    if (width < 1 || width > DV_PICTURE_MAX_SIDE || height < 1 || height > DV_PICTURE_MAX_SIDE)
        return dv_fail(error, DV_ERROR_ARGUMENT, "a picture of %zu x %zu pixels: give sides of 1 to %d", width, height,
                       DV_PICTURE_MAX_SIDE);
    picture->pixels = malloc(width * height * sizeof *picture->pixels);
    if (picture->pixels == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a picture of %zu x %zu pixels: draw less", width, height);
    picture->width = width;
    picture->height = height;
    dv_picture_fill(picture, 0, 0, width, height, colour);
    return DV_OK;
}

void dv_picture_free(dv_picture *picture) {
    if (picture == NULL)
        return;
    free(picture->pixels);
    *picture = (dv_picture){0};
}

/* The part of `length`, from `start` on, that lies below `end`. */
static size_t clip(size_t start, size_t length, size_t end) {
    size_t room = start < end ? end - start : 0;
    return length < room ? length : room;
}

void dv_picture_fill(dv_picture *picture, size_t x, size_t y, size_t width, size_t height, dv_colour colour) {
    width = clip(x, width, picture->width);
    height = clip(y, height, picture->height);
    for (size_t j = 0; j < height; j++)
        for (size_t i = 0; i < width; i++)
            picture->pixels[(y + j) * picture->width + x + i] = colour;
}

/* ---- maps ---------------------------------------------------------------------------------- */

/* The colours of a scale, evenly spaced; between them it is linear. */
enum { MAX_STOPS = 5 };

static const struct {
    int count;
    dv_colour stops[MAX_STOPS];
} scales[DV_SCALE_COUNT] = {
    [DV_SCALE_GREY] = {2, {{0, 0, 0}, {255, 255, 255}}},
    [DV_SCALE_DIVERGING] = {5, {{5, 48, 97}, {67, 147, 195}, {247, 247, 247}, {214, 96, 77}, {103, 0, 31}}},
};

static uint8_t blend(uint8_t from, uint8_t to, float part) {
    return (uint8_t)((float)from + ((float)to - (float)from) * part + 0.5f);
}

dv_colour dv_scale_colour(dv_scale scale, float value, float low, float high) {
    if (value != value)
        return (dv_colour){255, 0, 255};
    float part = high > low ? (value - low) / (high - low) : 0.5f;
    part = part > 0 ? part < 1 ? part : 1 : 0; /* NaN, as of infinite ends, becomes 0 */
    float position = part * (float)(scales[scale].count - 1);
    int index = (int)position;
    if (index > scales[scale].count - 2)
        index = scales[scale].count - 2;
    const dv_colour *from = &scales[scale].stops[index], *to = from + 1;
    float rest = position - (float)index;
    return (dv_colour){blend(from->red, to->red, rest), blend(from->green, to->green, rest),
                       blend(from->blue, to->blue, rest)};
}

void dv_picture_draw_map(dv_picture *picture, size_t x, size_t y, const dv_picture_map *map) {
    for (size_t j = 0; j < map->height; j++) {
        for (size_t i = 0; i < map->width; i++) {
            float value = map->values[j * map->stride_y + i * map->stride_x];
            dv_colour colour = dv_scale_colour(map->scale, value, map->low, map->high);
            dv_picture_fill(picture, x + i * map->zoom_x, y + j * map->zoom_y, map->zoom_x, map->zoom_y, colour);
        }
    }
}

void dv_picture_draw_image(dv_picture *picture, size_t x, size_t y, const dv_colour *image, size_t width, size_t height,
                           size_t zoom) {
    for (size_t j = 0; j < height; j++)
        for (size_t i = 0; i < width; i++)
            dv_picture_fill(picture, x + i * zoom, y + j * zoom, zoom, zoom, image[j * width + i]);
}

/* ---- text ---------------------------------------------------------------------------------- */

/* Draws one character, the set bits of each of its columns, upright or turned to the left. */
static void draw_character(dv_picture *picture, size_t x, size_t y, const char *character, size_t zoom, bool turned,
                           dv_colour colour) {
    uint8_t columns[DV_FONT_COLUMNS];
    dv_font_columns(dv_utf8_code(character), columns);
    for (size_t i = 0; i < DV_FONT_COLUMNS; i++)
        for (size_t j = 0; j < DV_FONT_ROWS; j++)
            if (columns[i] >> j & 1)
                dv_picture_fill(picture, x + (turned ? j : i) * zoom, turned ? y - (i + 1) * zoom : y + j * zoom, zoom,
                                zoom, colour);
}

void dv_picture_text(dv_picture *picture, size_t x, size_t y, const char *text, size_t zoom, dv_colour colour) {
    for (; *text != '\0'; text += dv_utf8_step(text), x += DV_TEXT_WIDTH * zoom)
        draw_character(picture, x, y, text, zoom, false, colour);
}

void dv_picture_text_up(dv_picture *picture, size_t x, size_t y, const char *text, size_t zoom, dv_colour colour) {
    for (; *text != '\0' && y >= DV_TEXT_WIDTH * zoom; text += dv_utf8_step(text), y -= DV_TEXT_WIDTH * zoom)
        draw_character(picture, x, y, text, zoom, true, colour);
}

/* ---- files --------------------------------------------------------------------------------- */

/* Encodes the canvas to the stream. Returns a code of libspng. */
static int encode(const dv_picture *picture, spng_ctx *context, FILE *stream) {
    struct spng_ihdr header = {.width = (uint32_t)picture->width,
                               .height = (uint32_t)picture->height,
                               .bit_depth = 8,
                               .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    int code = spng_set_png_file(context, stream);
    if (code == 0)
        code = spng_set_ihdr(context, &header);
    size_t bytes = picture->width * picture->height * sizeof *picture->pixels;
    if (code == 0)
        code = spng_encode_image(context, picture->pixels, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    return code;
}

dv_status dv_picture_write(const dv_picture *picture, const char *path, dv_error *error) {
    dv_file file;
    if (picture == NULL || picture->pixels == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "dv_picture_write: no picture: make one with dv_picture_new");
    DV_NEED(path);
    DV_TRY(dv_file_begin(&file, path, error));
    spng_ctx *context = spng_ctx_new(SPNG_CTX_ENCODER);
    int code = context != NULL ? encode(picture, context, file.stream) : SPNG_EMEM;
    spng_ctx_free(context);
    if (code == 0 || ferror(file.stream))
        return dv_file_commit(&file, error); /* which knows why the stream failed */
    dv_file_abandon(&file);
    return dv_fail(error, code == SPNG_EMEM ? DV_ERROR_MEMORY : DV_ERROR_UNSUPPORTED,
                   "could not make the PNG %s: %s: draw less", dv_file_shown(path), spng_strerror(code));
}
