/* Red zones, poison and patterns in the arena. */
#include "graph/guard.h"

#include "base/status.h"
#include "graph/plan.h"

#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DV_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define DV_ADDRESS_SANITIZER 1
#endif

#ifdef DV_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(begin, bytes) ((void)(begin), (void)(bytes))
#endif

enum { ZONE_PATTERN = 0xA5, HIDDEN_PATTERN = 0xFF, AT_REST = -1 };

static const char FILLED_IN[] = "whoever filled in the batch";

#ifdef DV_GUARDED_BUILD
enum { GUARDED_BUILD = true };
#else
enum { GUARDED_BUILD = false };
#endif

dv_guard_options dv_guard_options_default(void) {
    const char *wish = getenv("DV_GUARD");
    bool on = wish && *wish ? strcmp(wish, "0") != 0 : GUARDED_BUILD;
    return (dv_guard_options){.zones = on, .fill = on, .pattern = 0xFF};
}

struct dv_guard {
    const dv_plan *plan; /* not owned */
    char *arena;         /* not owned */
    dv_owner *owners;    /* [piece_count] */
    int moment;          /* that was entered last, or AT_REST */
    const char *outside; /* who may have written since then, if not the step itself, or NULL */
    char *behind;        /* [arena_bytes] what hidden pieces were, or NULL: nothing is hidden */
    bool hiding;         /* at this moment */
};

/* Between steps only what comes from outside is alive. */
static bool is_alive(const dv_guard *guard, size_t piece, int moment) {
    const dv_piece *p = &guard->plan->pieces[piece];
    if (moment == AT_REST)
        return guard->owners[piece].given;
    return p->first <= moment && moment <= p->last;
}

/* ---- zones ----------------------------------------------------------------------------------- */

/* A piece with its zones: [begin, piece) and [piece_end, end). Without zones both are empty. */
typedef struct block {
    unsigned char *begin, *piece, *piece_end, *end;
} block;

static block block_of(const dv_guard *guard, size_t piece) {
    const dv_piece *p = &guard->plan->pieces[piece];
    size_t zone = dv_guard_zone_bytes(&guard->plan->guard);
    unsigned char *at = (unsigned char *)guard->arena + p->offset;
    unsigned char *end = at + p->bytes;
    return (block){at - zone, at, end, zone ? at + dv_place_aligned(p->bytes) + zone : end};
}

static void poison(const unsigned char *begin, const unsigned char *end) {
    ASAN_POISON_MEMORY_REGION(begin, (size_t)(end - begin));
}

static void unpoison(const unsigned char *begin, const unsigned char *end) {
    ASAN_UNPOISON_MEMORY_REGION(begin, (size_t)(end - begin));
}

/* The first byte of a zone that has changed, or NULL. */
static const unsigned char *changed(const unsigned char *begin, const unsigned char *end) {
    const unsigned char *at = begin;
    unpoison(begin, end);
    while (at < end && *at == ZONE_PATTERN)
        at++;
    poison(begin, end);
    return at < end ? at : NULL;
}

static dv_status check(const dv_guard *guard, const char *who, dv_error *error) {
    for (size_t i = 0; guard->plan->guard.zones && i < guard->plan->piece_count; i++) {
        if (!is_alive(guard, i, guard->moment))
            continue;
        block b = block_of(guard, i);
        const unsigned char *before = changed(b.begin, b.piece), *behind = changed(b.piece_end, b.end);
        if (!before && !behind)
            continue;
        const dv_owner *owner = &guard->owners[i];
        return dv_fail(
            error, DV_ERROR_BUFFER, "%s wrote %td bytes %s of %s's %s: a fault of this program: please report it", who,
            before ? b.piece - before : behind - b.piece_end + 1, before ? "before the start" : "past the end",
            owner->layer ? owner->layer->name : "the input", owner->role ? owner->role : "piece");
    }
    return DV_OK;
}

/* ---- hiding ---------------------------------------------------------------------------------- */

static bool is_hidden(const dv_guard *guard, size_t piece) {
    return is_alive(guard, piece, guard->moment) && !dv_plan_touches(guard->plan, guard->moment, piece);
}

static void hide(dv_guard *guard) {
    for (size_t i = 0; i < guard->plan->piece_count; i++) {
        const dv_piece *p = &guard->plan->pieces[i];
        if (!is_hidden(guard, i))
            continue;
        memcpy(guard->behind + p->offset, guard->arena + p->offset, p->bytes);
        memset(guard->arena + p->offset, HIDDEN_PATTERN, p->bytes);
    }
    guard->hiding = true;
}

static bool is_all_hidden(const char *memory, size_t bytes) {
    return (unsigned char)memory[0] == HIDDEN_PATTERN && memcmp(memory, memory + 1, bytes - 1) == 0;
}

/* Gives hidden pieces back what they were. Returns the first that has been written meanwhile, or the piece count. */
static size_t show(dv_guard *guard) {
    size_t count = guard->plan->piece_count, written = count;
    for (size_t i = 0; i < count; i++) {
        const dv_piece *p = &guard->plan->pieces[i];
        if (!is_hidden(guard, i))
            continue;
        if (written == count && !is_all_hidden(guard->arena + p->offset, p->bytes))
            written = i;
        memcpy(guard->arena + p->offset, guard->behind + p->offset, p->bytes);
    }
    guard->hiding = false;
    return written;
}

static dv_status check_hidden(dv_guard *guard, const char *who, dv_error *error) {
    size_t written = guard->hiding ? show(guard) : guard->plan->piece_count;
    if (written == guard->plan->piece_count)
        return DV_OK;
    const dv_owner *owner = &guard->owners[written];
    return dv_fail(error, DV_ERROR_BUFFER,
                   "%s wrote into %s's %s, which the schedule does not say: a fault of this program: please report it",
                   who, owner->layer ? owner->layer->name : "the input", owner->role ? owner->role : "piece");
}

/* ---- lives ----------------------------------------------------------------------------------- */

static void begin_life(const dv_guard *guard, size_t piece) {
    block b = block_of(guard, piece);
    unpoison(b.begin, b.end);
    memset(b.begin, ZONE_PATTERN, (size_t)(b.piece - b.begin));
    memset(b.piece_end, ZONE_PATTERN, (size_t)(b.end - b.piece_end));
    poison(b.begin, b.piece);
    poison(b.piece_end, b.end);
    if (guard->plan->guard.fill && !guard->owners[piece].given)
        memset(b.piece, guard->plan->guard.pattern, (size_t)(b.piece_end - b.piece));
}

static void end_life(const dv_guard *guard, size_t piece) {
    block b = block_of(guard, piece);
    if (guard->plan->guard.zones)
        poison(b.begin, b.end);
}

/* Ends the lives that end before `moment` and begins those that begin with it, which may be in the same place. */
static void move_to(dv_guard *guard, int moment) {
    for (size_t i = 0; i < guard->plan->piece_count; i++)
        if (is_alive(guard, i, guard->moment) && !is_alive(guard, i, moment))
            end_life(guard, i);
    for (size_t i = 0; i < guard->plan->piece_count; i++)
        if (!is_alive(guard, i, guard->moment) && is_alive(guard, i, moment))
            begin_life(guard, i);
    guard->moment = moment;
}

dv_status dv_guard_enter(dv_guard *guard, int moment, dv_error *error) {
    if (!guard)
        return DV_OK;
    const char *outside = guard->outside;
    guard->outside = NULL;
    if (outside)
        DV_TRY(check(guard, outside, error));
    move_to(guard, moment);
    if (guard->behind && !guard->hiding)
        hide(guard);
    return DV_OK;
}

dv_status dv_guard_leave(dv_guard *guard, const char *layer, dv_error *error) {
    if (!guard)
        return DV_OK;
    DV_TRY(check_hidden(guard, layer, error));
    return check(guard, layer, error);
}

void dv_guard_pause(dv_guard *guard, int moment) {
    if (!guard)
        return;
    move_to(guard, moment);
    guard->outside = "whoever had the logits";
}

void dv_guard_open(const dv_guard *guard, size_t piece) {
    if (!guard)
        return;
    block b = block_of(guard, piece);
    unpoison(b.piece, b.piece_end);
}

void dv_guard_rest(dv_guard *guard) {
    if (!guard || guard->moment == AT_REST)
        return;
    if (guard->hiding)
        show(guard);
    move_to(guard, AT_REST);
    guard->outside = FILLED_IN;
}

/* ---- making one ------------------------------------------------------------------------------ */

dv_status dv_guard_new(const dv_plan *plan, void *arena, dv_guard **guard, dv_error *error) {
    *guard = NULL;
    if (!plan->guard.zones && !plan->guard.fill && !plan->guard.hide)
        return DV_OK;
    dv_guard *made = calloc(1, sizeof *made);
    dv_owner *owners = calloc(plan->piece_count + 1, sizeof *owners);
    char *behind = plan->guard.hide ? malloc(plan->arena_bytes) : NULL;
    if (!made || !owners || (plan->guard.hide && !behind)) {
        free(made);
        free(owners);
        free(behind);
        return dv_fail(error, DV_ERROR_MEMORY, "run: no memory");
    }
    *made = (dv_guard){
        .plan = plan, .arena = arena, .owners = owners, .moment = AT_REST, .outside = FILLED_IN, .behind = behind};
    dv_plan_owners(plan, owners);
    if (plan->guard.zones)
        poison((unsigned char *)arena, (unsigned char *)arena + plan->arena_bytes);
    for (size_t i = 0; i < plan->piece_count; i++)
        if (owners[i].given)
            begin_life(made, i);
    *guard = made;
    return DV_OK;
}

void dv_guard_free(dv_guard *guard) {
    if (!guard)
        return;
    unpoison((unsigned char *)guard->arena, (unsigned char *)guard->arena + guard->plan->arena_bytes);
    free(guard->owners);
    free(guard->behind);
    free(guard);
}
