/* The table of optimizers, and optimizers from text. A new one is a file and a line here. */
#include "base/option_text.h"
#include "base/sizes.h"
#include "base/status.h"
#include "optimizer/kind.h"

#include <stdio.h>
#include <string.h>

extern const dv_optimizer_kind dv_optimizer_sgd, dv_optimizer_adamw, dv_optimizer_rmsprop;

static const dv_optimizer_kind *const kinds[] = {
    &dv_optimizer_sgd,
    &dv_optimizer_adamw,
    &dv_optimizer_rmsprop,
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

const dv_optimizer_kind *dv_optimizer_added;

const char *dv_optimizer_name_at(size_t index) {
    return index < KIND_COUNT ? kinds[index]->name : NULL;
}

const char *dv_optimizer_help_at(size_t index) {
    return index < KIND_COUNT ? kinds[index]->help : NULL;
}

const dv_option *dv_optimizer_option_at(size_t optimizer, size_t index) {
    return optimizer < KIND_COUNT && index < kinds[optimizer]->option_count ? &kinds[optimizer]->options[index] : NULL;
}

/* ---- from text ----------------------------------------------------------------------------- */

/* `options` is what follows the colon, or NULL. */
static dv_status find_kind(const char *text, const dv_optimizer_kind **kind, const char **options, dv_error *error) {
    char known[200] = "";
    if (dv_optimizer_added && dv_option_text_names(text, dv_optimizer_added->name, options)) {
        *kind = dv_optimizer_added;
        return DV_OK;
    }
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (dv_option_text_names(text, kinds[i]->name, options)) {
            *kind = kinds[i];
            return DV_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", kinds[i]->name);
    }
    return dv_fail(error, DV_ERROR_OPTION, "unknown optimizer \"%.*s\": there are %s",
                   (int)dv_smaller(strcspn(text, ":"), 40), text, known);
}

static const dv_option decay_option[] = {
    {"decay", "D", "of parameters, at each step, by learning rate times so much",
     DV_NUMBER_AT(dv_optimizer, decay, 0, 1)},
};

static dv_status read_options(const char *text, dv_optimizer *optimizer, dv_error *error) {
    const dv_optimizer_kind *kind = optimizer->kind;
    const dv_option_table tables[] = {{kind->options, kind->option_count, optimizer->options},
                                      {decay_option, 1, optimizer}};
    dv_option_text_preset(&tables[0]);
    optimizer->decay = kind->decay;
    DV_TRY(dv_option_text_parse(kind->name, text, tables, 2, error));
    return kind->check ? kind->check(optimizer->options, error) : DV_OK;
}

bool dv_optimizer_same(const dv_optimizer *a, const dv_optimizer *b) {
    bool same = a->kind == b->kind && a->decay == b->decay;
    for (size_t i = 0; same && i < a->kind->option_count; i++)
        same = a->kind->options[i].kind == DV_OPTION_FLAG ? a->options[i].flag == b->options[i].flag
                                                          : a->options[i].number == b->options[i].number;
    return same;
}

dv_status dv_optimizer_parse(const char *text, dv_optimizer *optimizer, dv_error *error) {
    dv_optimizer made = {.kind = NULL};
    const char *options;
    DV_NEED(text);
    DV_NEED(optimizer);
    DV_TRY(find_kind(text, &made.kind, &options, error));
    DV_TRY(read_options(options, &made, error));
    *optimizer = made;
    return DV_OK;
}

/* ---- slots --------------------------------------------------------------------------------- */

static bool in_use(const dv_optimizer *optimizer, const dv_optimizer_slot *slot) {
    if (slot->option == DV_SLOT_ALWAYS)
        return true;
    const dv_optimizer_value *value = &optimizer->options[slot->option];
    return optimizer->kind->options[slot->option].kind == DV_OPTION_FLAG ? value->flag != 0 : value->number != 0;
}

const char *dv_optimizer_name(const dv_optimizer *optimizer) {
    return optimizer && optimizer->kind ? optimizer->kind->name : NULL;
}

const char *dv_optimizer_slot_at(const dv_optimizer *optimizer, size_t index) {
    for (size_t i = 0; optimizer && optimizer->kind && i < optimizer->kind->slot_count; i++)
        if (in_use(optimizer, &optimizer->kind->slots[i]) && index-- == 0)
            return optimizer->kind->slots[i].name;
    return NULL;
}

size_t dv_optimizer_slot_count(const dv_optimizer *optimizer) {
    size_t count = 0;
    while (dv_optimizer_slot_at(optimizer, count))
        count++;
    return count;
}

/* ---- updates ------------------------------------------------------------------------------- */

/* What a thread takes at a time: it is worth waking one for. */
enum { PART_ELEMENTS = 1 << 14 };

/* The elements from `first` on. */
static dv_update part_of(const dv_update *whole, size_t first) {
    dv_update part = *whole;
    part.count = dv_smaller(whole->count - first, PART_ELEMENTS);
    part.parameter += first;
    part.gradient += first;
    for (size_t i = 0; i < DV_OPTIMIZER_MAX_SLOTS; i++)
        part.slots[i] = whole->slots[i] ? whole->slots[i] + first : NULL;
    return part;
}

void dv_optimizer_update(const dv_optimizer *optimizer, dv_update *update, float *state) {
    const dv_optimizer_kind *kind = optimizer->kind;
    update->options = optimizer->options;
    for (size_t i = 0; i < kind->slot_count; i++) {
        bool used = in_use(optimizer, &kind->slots[i]);
        update->slots[i] = used ? state : NULL;
        state += used ? update->count : 0;
    }
    size_t parts = dv_divide_up(update->count, PART_ELEMENTS);
#pragma omp parallel for schedule(static) if (parts > 1)
    for (size_t k = 0; k < parts; k++) {
        dv_update part = part_of(update, k * PART_ELEMENTS);
        kind->update(&part);
    }
}
