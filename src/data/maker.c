/* From an index to pixels. */
#include "data/maker.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

/* Corrupt images one after the other before that is an error of its own. */
enum { MOST_IN_A_ROW = 100 };

static size_t square_bytes(size_t side) {
    return side * side * DV_PIXEL;
}

static bool needs_decoder(const dv_dataset *data, const dv_view_options *view) {
    return data->kind->fetch != NULL || view->side != data->shape.side || view->resize != view->side ||
           (view->vary && view->augmentation.crop == DV_CROP_RESIZED);
}

/* Data of one size are loaded into a buffer first. */
static size_t source_bytes(const dv_dataset *data) {
    return data->kind->fetch == NULL ? square_bytes(data->shape.side) : 1;
}

size_t dv_maker_bytes(const dv_dataset *data, const dv_view_options *view) {
    return source_bytes(data) + square_bytes(view->side) +
           (needs_decoder(data, view) ? dv_decoder_bytes(view->side, view->side) : 0);
}

dv_status dv_maker_init(dv_maker *maker, const dv_dataset *data, dv_split split, const dv_view_options *view,
                        uint64_t seed, dv_error *error) {
    *maker = (dv_maker){.data = data, .split = split, .view = *view, .seed = seed};
    maker->source = malloc(source_bytes(data));
    maker->square = malloc(square_bytes(view->side));
    if (maker->source == NULL || maker->square == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a loader: free some");
    return needs_decoder(data, view) ? dv_decoder_new(view->side, view->side, &maker->decoder, error) : DV_OK;
}

void dv_maker_destroy(dv_maker *maker) {
    dv_decoder_free(maker->decoder);
    free(maker->source);
    free(maker->square);
}

/* ---- one image ----------------------------------------------------------------------------- */

/* Moves and mirrors what is in `square`, or in `dst` already, and leaves it in `dst`. */
static void finish(const dv_view *view, const uint8_t *square, uint8_t *dst) {
    if (dv_view_moves(view))
        dv_view_move(view, square, dst);
    else if (square != dst)
        memcpy(dst, square, square_bytes(view->size.part_width));
    if (view->flip)
        dv_view_mirror(view->size.part_width, dst);
}

static dv_status make_loaded(dv_maker *maker, dv_showing showing, size_t index, uint8_t *dst, int32_t *label,
                             dv_error *error) {
    size_t side = maker->data->shape.side;
    DV_TRY(maker->data->kind->load(maker->data, maker->split, index, maker->source, label, error));
    dv_view view = dv_view_choose(&maker->view, showing, side, side);
    if (dv_view_is_plain(&view)) {
        finish(&view, maker->source, dst);
        return DV_OK;
    }
    uint8_t *square = dv_view_moves(&view) ? maker->square : dst;
    dv_decoder_show_pixels(maker->decoder, maker->source, side, &view, square);
    finish(&view, square, dst);
    return DV_OK;
}

static dv_status decode(dv_maker *maker, dv_showing showing, const dv_record *record, uint8_t *dst, dv_error *error) {
    size_t width, height;
    DV_TRY(dv_decoder_open(maker->decoder, record->bytes, record->count, &width, &height, error));
    dv_view view = dv_view_choose(&maker->view, showing, width, height);
    uint8_t *square = dv_view_moves(&view) ? maker->square : dst;
    DV_TRY(dv_decoder_show(maker->decoder, &view, square, error));
    finish(&view, square, dst);
    return DV_OK;
}

/* Puts the image's name in front of what is wrong with it. */
static dv_status name(const dv_maker *maker, size_t index, dv_status status, dv_error *error) {
    char text[DV_IMAGE_NAME_BYTES];
    if (status == DV_OK || error == NULL)
        return status;
    dv_dataset_name_image(maker->data, maker->split, index, text);
    return dv_fail(error, status, "%s: %.*s", text, (int)(sizeof error->text - strlen(text) - 3), error->text);
}

static dv_status make_decoded(dv_maker *maker, dv_showing showing, size_t index, uint8_t *dst, int32_t *label,
                              dv_error *error) {
    dv_record record;
    DV_TRY(maker->data->kind->fetch(maker->data, maker->split, index, &record, error));
    dv_status status = decode(maker, showing, &record, dst, error);
    *label = record.label;
    maker->data->kind->release(maker->data, &record);
    return name(maker, index, status, error);
}

dv_status dv_maker_make_only(dv_maker *maker, dv_showing showing, size_t index, uint8_t *dst, int32_t *label,
                             dv_error *error) {
    return maker->data->kind->fetch != NULL ? make_decoded(maker, showing, index, dst, label, error)
                                            : make_loaded(maker, showing, index, dst, label, error);
}

/* ---- and if it is corrupt ------------------------------------------------------------------ */

dv_status dv_maker_make(dv_maker *maker, uint64_t epoch, size_t index, uint8_t *dst, int32_t *label, size_t *made,
                        dv_error *damage, dv_error *error) {
    dv_showing showing = {maker->seed, epoch, index};
    size_t images = maker->data->shape.images[maker->split];
    dv_error inner;
    damage->status = DV_OK;
    for (size_t tries = 0; tries < MOST_IN_A_ROW && tries < images; tries++) {
        *made = (index + tries) % images;
        dv_status status = dv_maker_make_only(maker, showing, *made, dst, label, &inner);
        if (status == DV_OK)
            return DV_OK;
        if (status != DV_ERROR_FORMAT) {
            if (error != NULL)
                *error = inner;
            return status;
        }
        if (tries == 0)
            *damage = inner;
    }
    return dv_fail(error, DV_ERROR_FORMAT, "%.180s; and so on: no good image among many", damage->text);
}
