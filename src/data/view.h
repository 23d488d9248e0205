/* What is seen of an image: which part of it, resized to what, moved and mirrored how. Chosen by the size of the
 * image and, for varied views, by which image it is and in which epoch; so the choice is the same whoever makes it. */
#ifndef DV_DATA_VIEW_H
#define DV_DATA_VIEW_H

#include "data/resample.h"

#include <division/data.h>
#include <stdbool.h>

/* A view of an image, in its order: the part, resized; then the square moved over what is added around; then
 * the mirror. */
typedef struct dv_view {
    size_t left, top;      /* of the part of the source */
    dv_resample_size size; /* width and height are the part's; a square of the side is left of it */
    int right, down;       /* by how much the square is moved then */
    bool reflect;          /* what is added around mirrors the inside; else it is black */
    bool flip;             /* unless it is mirrored while it is resized */
    bool scaled;           /* a JPEG far larger than the view may be decoded at 1/2, 1/4 or 1/8 of its size first */
} dv_view;

/* What views are chosen by. */
typedef struct dv_view_options {
    size_t side;                  /* of the square */
    size_t resize;                /* the shorter side before the square is taken from the middle, at least `side` */
    bool vary;                    /* else the middle */
    dv_augmentation augmentation; /* how; not DV_CROP_USUAL */
} dv_view_options;

/* Which image is shown when: all that a varied view is drawn from. */
typedef struct dv_showing {
    uint64_t seed, epoch, index;
} dv_showing;

/* The view of an image of width x height. */
dv_view dv_view_choose(const dv_view_options *options, dv_showing showing, size_t width, size_t height);

/* The whole image at another size. */
dv_view dv_view_whole(size_t width, size_t height, size_t target_width, size_t target_height);

/* Whether the view shows the source's own pixels: a square of its size, not resized. */
bool dv_view_is_plain(const dv_view *view);

/* Moves a square image [side][side][3] as the view says. */
void dv_view_move(const dv_view *view, const uint8_t *square, uint8_t *dst);
bool dv_view_moves(const dv_view *view);

/* Mirrors a square image in place. */
void dv_view_mirror(size_t side, uint8_t *image);

#endif
