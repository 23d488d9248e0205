/* Choosing views as the published recipes do, and moving and mirroring squares. */
#include "data/view.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

/* ---- drawing ------------------------------------------------------------------------------- */

/* Takes numbers off a key's sequence, one after the other. */
typedef struct lots {
    dv_random key;
    uint32_t next;
} lots;

static double draw(lots *from, double low, double high) {
    return low + (high - low) * ((double)dv_random_word(from->key, from->next++) * 0x1p-32);
}

/* A number from 0 to count - 1. */
static size_t draw_below(lots *from, size_t count) {
    return (size_t)((uint64_t)dv_random_word(from->key, from->next++) * count >> 32);
}

/* ---- choosing ------------------------------------------------------------------------------ */

/* The size of the image whose shorter side becomes `shorter`; as in torchvision, the longer one is rounded down. */
static void fit(size_t width, size_t height, size_t shorter, size_t *target_width, size_t *target_height) {
    *target_width = width <= height ? shorter : (size_t)((double)shorter * (double)width / (double)height);
    *target_height = width <= height ? (size_t)((double)shorter * (double)height / (double)width) : shorter;
}

/* Where a part of `side` in the middle of `whole` begins; halves are rounded to the even number, as Python does. */
static size_t middle(size_t whole, size_t side) {
    return (size_t)nearbyint((double)(whole - side) / 2);
}

/* The square in the middle, of the image with a shorter side of `resize`. */
static dv_view choose_middle(size_t side, size_t resize, size_t width, size_t height) {
    dv_view view = {.size = {.width = width, .height = height, .part_width = side, .part_height = side}};
    fit(width, height, resize, &view.size.target_width, &view.size.target_height);
    view.size.left = middle(view.size.target_width, side);
    view.size.top = middle(view.size.target_height, side);
    return view;
}

/* The square of the whole image, moved by up to `padding` pixels either way. */
static dv_view choose_moved(const dv_view_options *options, lots *from, size_t width, size_t height) {
    size_t padding = options->augmentation.padding;
    dv_view view = choose_middle(options->side, options->side, width, height);
    view.right = (int)draw_below(from, 2 * padding + 1) - (int)padding;
    view.down = (int)draw_below(from, 2 * padding + 1) - (int)padding;
    view.reflect = options->augmentation.crop == DV_CROP_REFLECT;
    return view;
}

/* A part of the source that is resized to the square. */
static dv_view part_of(const dv_view_options *options, size_t left, size_t top, size_t width, size_t height) {
    size_t side = options->side;
    return (dv_view){.left = left, .top = top, .size = {width, height, side, side, 0, 0, side, side, false}};
}

/* What is taken where no part of the wanted shape fits: the largest in the middle of nearly that shape. */
static dv_view choose_fallback(const dv_view_options *options, size_t width, size_t height) {
    const dv_augmentation *how = &options->augmentation;
    size_t part_width = width, part_height = height;
    double ratio = (double)width / (double)height;
    if (ratio < how->least_ratio)
        part_height = (size_t)fmax(1, round((double)width / how->least_ratio));
    else if (ratio > how->most_ratio)
        part_width = (size_t)fmax(1, round((double)height * how->most_ratio));
    return part_of(options, (width - part_width) / 2, (height - part_height) / 2, part_width, part_height);
}

/* A part of random area and shape, as torchvision's RandomResizedCrop takes it. */
static dv_view choose_resized(const dv_view_options *options, lots *from, size_t width, size_t height) {
    enum { TRIES = 10 };
    const dv_augmentation *how = &options->augmentation;
    for (int i = 0; i < TRIES; i++) {
        double area = (double)width * (double)height * draw(from, how->least_area, how->most_area);
        double ratio = exp(draw(from, log(how->least_ratio), log(how->most_ratio)));
        double part_width = round(sqrt(area * ratio)), part_height = round(sqrt(area / ratio));
        if (part_width < 1 || part_width > (double)width || part_height < 1 || part_height > (double)height)
            continue;
        size_t top = draw_below(from, height - (size_t)part_height + 1);
        size_t left = draw_below(from, width - (size_t)part_width + 1);
        return part_of(options, left, top, (size_t)part_width, (size_t)part_height);
    }
    return choose_fallback(options, width, height);
}

static dv_view choose_crop(const dv_view_options *options, lots *from, size_t width, size_t height) {
    switch (options->augmentation.crop) {
    case DV_CROP_ZERO:
    case DV_CROP_REFLECT:
        return choose_moved(options, from, width, height);
    case DV_CROP_RESIZED:
        return choose_resized(options, from, width, height);
    default:
        return choose_middle(options->side, options->resize, width, height);
    }
}

/* Whether an image is mirrored that is in every other epoch: the first time by chance. */
static bool alternates(dv_showing showing) {
    dv_random key = dv_random_key((const uint64_t[]){showing.seed, showing.index, 0x666c6970}, 3);
    return (dv_random_word(key, 0) >> 31) != (showing.epoch & 1);
}

static bool choose_flip(dv_flip flip, dv_showing showing, lots *from) {
    switch (flip) {
    case DV_FLIP_CHANCE:
        return draw_below(from, 2) == 1;
    case DV_FLIP_ALTERNATE:
        return alternates(showing);
    default:
        return false;
    }
}

dv_view dv_view_choose(const dv_view_options *options, dv_showing showing, size_t width, size_t height) {
    lots from = {dv_random_key((const uint64_t[]){showing.seed, showing.epoch, showing.index}, 3), 0};
    if (!options->vary)
        return choose_middle(options->side, options->resize, width, height);
    dv_view view = choose_crop(options, &from, width, height);
    bool flip = choose_flip((dv_flip)options->augmentation.flip, showing, &from);
    view.size.flip = flip && !dv_view_moves(&view) && !dv_view_is_plain(&view); /* for nothing, while it is resized */
    view.flip = flip && !view.size.flip;
    view.scaled = true; /* quicker, and nothing to the variation; views of a test are exact */
    return view;
}

dv_view dv_view_whole(size_t width, size_t height, size_t target_width, size_t target_height) {
    return (dv_view){
        .size = {width, height, target_width, target_height, 0, 0, target_width, target_height, false},
    };
}

bool dv_view_is_plain(const dv_view *view) {
    const dv_resample_size *size = &view->size;
    return size->width == size->part_width && size->height == size->part_height && size->target_width == size->width &&
           size->target_height == size->height;
}

/* ---- moving -------------------------------------------------------------------------------- */

bool dv_view_moves(const dv_view *view) {
    return view->right != 0 || view->down != 0;
}

/* The place inside 0 .. side - 1 that is seen at `at`, or -1 for black. The edge itself is not repeated. */
static int place(int at, int side, bool reflect) {
    if (at >= 0 && at < side)
        return at;
    if (!reflect)
        return -1;
    return at < 0 ? -at : 2 * side - 2 - at;
}

void dv_view_move(const dv_view *view, const uint8_t *square, uint8_t *dst) {
    int side = (int)view->size.part_width;
    size_t stride = (size_t)side * DV_PIXEL;
    for (int y = 0; y < side; y++, dst += stride) {
        int from = place(y + view->down, side, view->reflect);
        if (from < 0) {
            memset(dst, 0, stride);
            continue;
        }
        for (int x = 0; x < side; x++) {
            int at = place(x + view->right, side, view->reflect);
            const uint8_t *pixel = square + (size_t)from * stride + (size_t)(at < 0 ? 0 : at) * DV_PIXEL;
            for (size_t channel = 0; channel < DV_PIXEL; channel++)
                dst[(size_t)x * DV_PIXEL + channel] = at < 0 ? 0 : pixel[channel];
        }
    }
}

void dv_view_mirror(size_t side, uint8_t *image) {
    for (size_t y = 0; y < side; y++, image += side * DV_PIXEL)
        for (size_t x = 0; x < side / 2; x++) {
            uint8_t *left = image + x * DV_PIXEL, *right = image + (side - 1 - x) * DV_PIXEL, kept[DV_PIXEL];
            memcpy(kept, left, DV_PIXEL);
            memcpy(left, right, DV_PIXEL);
            memcpy(right, kept, DV_PIXEL);
        }
}
