/* A file has the value in the meantime, in the form of another keeper: exact or packed. It is written behind the
 * forward pass and read ahead of the backward pass, by the threads of base/spill.h.
 *
 *     forward    F p   W v   F p+1   F p+2   D v  ...                 the form's memory: from F p to D v
 *     backward   ...   R v   B f+2   B f+1   B f   ...   B l          read back to memory of its own: from R v to B l
 *
 * p makes v, f is the first to read it and l the last. W submits the write, D waits until it is done, R submits the
 * read; whoever loads v first waits for that. */
#include "base/spill.h"
#include "base/status.h"
#include "graph/plan.h"
#include "graph/run.h"

/* Below this a value is not worth a transfer. */
enum { LEAST_BYTES = 64 << 10 };

static size_t least_bytes = LEAST_BYTES;

void dv_spill_least_force(size_t bytes) {
    least_bytes = bytes ? bytes : LEAST_BYTES;
}

int dv_spill_written_behind(const dv_plan *plan, dv_value value) {
    const dv_graph_value *made = &plan->graph->values[value];
    int due = made->producer + DV_WRITE_BEHIND, last = (int)plan->graph->layer_count - 1;
    due = due < made->last_user ? made->last_user : due;
    return due < last ? due : last;
}

int dv_spill_read_before(const dv_plan *plan, dv_value value) {
    int first = dv_readers_of(&plan->values[value]).first + DV_READ_AHEAD, last = (int)plan->graph->layer_count - 1;
    return first < last ? first : last;
}

/* It must be out of memory for a while, or there is nothing to gain. */
bool dv_plan_can_spill(const dv_plan *plan, dv_value value) {
    int last = (int)plan->graph->layer_count - 1;
    int away = last - dv_spill_written_behind(plan, value) + last - dv_spill_read_before(plan, value);
    return away >= 2 && dv_map_bytes(&plan->graph->values[value].map) >= least_bytes;
}

void dv_plan_spill(dv_plan *plan, dv_value value, const dv_keeper *behind) {
    plan->values[value].behind = behind;
    plan->values[value].keeper = &dv_keep_spilled;
    if (behind->ask)
        behind->ask(plan, value);
}

/* ---- planning -------------------------------------------------------------------------------- */

/* The bytes that the other keeper would have kept in memory are the file's. */
static dv_status book(dv_plan *plan, dv_value value, int made, dv_error *error) {
    dv_value_plan *v = &plan->values[value];
    size_t others = v->kept_bytes;
    DV_TRY(v->behind->book(plan, value, made, error));
    v->spilled_bytes = v->kept_bytes - others;
    v->kept_bytes = others;
    v->file_offset = plan->file_bytes;
    plan->file_bytes += dv_spill_room(v->spilled_bytes);
    v->again = dv_plan_book(plan, v->spilled_bytes, v->read_at, dv_last_read(plan, dv_readers_of(v)));
    return DV_OK;
}

/* ---- operations ------------------------------------------------------------------------------ */

dv_status dv_spilled_write(dv_run *run, dv_value value, dv_error *error) {
    const dv_value_plan *v = &run->plan->values[value];
    return dv_spill_write(run->spill, v->file_offset, dv_run_piece(run, v->behind->form(v)), v->spilled_bytes,
                          &run->transfers[value].ticket, error);
}

dv_status dv_spilled_wait(dv_run *run, dv_value value, dv_error *error) {
    return dv_spill_wait(run->spill, run->transfers[value].ticket, error);
}

dv_status dv_spilled_read(dv_run *run, dv_value value, dv_error *error) {
    const dv_value_plan *v = &run->plan->values[value];
    return dv_spill_read(run->spill, v->file_offset, dv_run_piece(run, v->again), v->spilled_bytes,
                         &run->transfers[value].ticket, error);
}

/* ---- access ---------------------------------------------------------------------------------- */

static dv_status wait_for(const dv_kept *kept, dv_error *error) {
    const dv_transfer *transfer = kept->transfer;
    return dv_spill_wait(transfer->run->spill, transfer->ticket, error);
}

static dv_status store(const dv_kept *kept, size_t first, size_t count, const void *images, dv_error *error) {
    return kept->behind->store ? kept->behind->store(kept, first, count, images, error) : DV_OK;
}

static dv_status load(const dv_kept *kept, size_t first, size_t count, void *buffer, const void **images,
                      dv_error *error) {
    DV_TRY(wait_for(kept, error));
    return kept->behind->load(kept, first, count, buffer, images, error);
}

static dv_status load_normalized(const dv_kept *kept, size_t first, size_t count, const struct dv_lean_norm *norm,
                                 void *images, dv_error *error) {
    DV_TRY(wait_for(kept, error));
    return kept->behind->load_normalized(kept, first, count, norm, images, error);
}

static dv_status load_mask(const dv_kept *kept, size_t first, size_t count, uint8_t *buffer, const uint8_t **mask,
                           dv_error *error) {
    DV_TRY(wait_for(kept, error));
    return kept->behind->load_mask(kept, first, count, buffer, mask, error);
}

static void fill(const dv_run *run, dv_value value, dv_kept *kept) {
    const dv_keeper *behind = run->plan->values[value].behind;
    behind->fill(run, value, kept);
    kept->behind = &behind->access;
    kept->transfer = &run->transfers[value];
}

const dv_keeper dv_keep_spilled = {
    .name = "spilled",
    .access = {.store = store, .load = load, .load_normalized = load_normalized, .load_mask = load_mask},
    .spills = true,
    .book = book,
    .fill = fill,
};

/* ---- the file -------------------------------------------------------------------------------- */

static dv_spill_options options_of(const dv_plan *plan) {
    dv_spill_options options = dv_spill_options_default();
    options.file.in_memory = plan->spill_in_memory;
    return options;
}

size_t dv_spill_plan_bytes(const dv_plan *plan) {
    dv_spill_options options = options_of(plan);
    return plan->file_bytes ? dv_spill_memory_bytes(&options) + DV_SPILL_BLOCK : 0;
}

dv_status dv_spilled_open(dv_run *run, dv_error *error) {
    const dv_plan *plan = run->plan;
    dv_spill_options options = options_of(plan);
    if (plan->file_bytes == 0)
        return DV_OK;
    uintptr_t memory = (uintptr_t)dv_run_piece(run, plan->spill_memory);
    memory = (memory + DV_SPILL_BLOCK - 1) / DV_SPILL_BLOCK * DV_SPILL_BLOCK;
    for (size_t v = 0; v < plan->graph->value_count; v++)
        run->transfers[v].run = run;
    return dv_spill_new(plan->spill_folder, plan->file_bytes, &options, (void *)memory, &run->spill, error);
}
