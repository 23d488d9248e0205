/* How long each maker takes for a pass: makers by turns, so that what else the machine does meets all of them, and of
 * each the shortest time. */
#include "base/status.h"
#include "nn/choices.h"

#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUNDS = 3, MOST_ROUNDS = 6, HOPELESS = 2, HUGE_FROM = 4 << 20 };

static const double round_seconds = 1e-3; /* at least, of a maker in a round */
static const double most_seconds = 0.15;  /* after which no further round begins, but for the first two */

/* Memory that is the system's again as soon as it is given back. */
typedef struct block {
    void *data; /* NULL: there is none */
    size_t bytes;
} block;

/* With numbers in it, 0.01 in either type, as zeros and what is nearly zero are computed at other speeds. Large ones in
 * large pages, as the arena is: filling them page by page took as long as measuring. */
static block filled(size_t bytes) {
    block made = {.bytes = bytes + 1};
    void *data = mmap(NULL, made.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data != MAP_FAILED && made.bytes >= HUGE_FROM)
        (void)madvise(data, made.bytes, MADV_HUGEPAGE);
    if (data != MAP_FAILED)
        made.data = memset(data, 0x3c, made.bytes);
    return made;
}

static void block_free(const block *b) {
    if (b->data)
        munmap(b->data, b->bytes);
}

/* What passes of one shape compute on. */
typedef struct arrays {
    block src, dst, weights, gradient, bias;
} arrays;

/* A candidate. */
typedef struct candidate {
    dv_pass *pass; /* NULL: it does not suit */
    block packed, workspace;
    double seconds; /* the shortest so far */
} candidate;

static void arrays_free(const arrays *a) {
    block_free(&a->src);
    block_free(&a->dst);
    block_free(&a->weights);
    block_free(&a->gradient);
    block_free(&a->bias);
}

static bool arrays_init(arrays *a, const dv_convolution_shape *shape) {
    size_t src = shape->images * shape->src_channels, dst = shape->images * shape->dst_channels;
    size_t weights = shape->dst_channels * shape->src_channels / shape->groups, element = dv_type_bytes(shape->type);
    for (int d = 0; d < shape->rank; d++) {
        src *= shape->src_sides[d];
        dst *= shape->dst_sides[d];
        weights *= shape->window.kernel[d];
    }
    *a = (arrays){.src = filled(src * element),
                  .dst = filled(dst * element),
                  .weights = filled(weights * sizeof(float)),
                  .gradient = filled(weights * sizeof(float)),
                  .bias = filled(shape->dst_channels * sizeof(float))};
    return a->src.data && a->dst.data && a->weights.data && a->gradient.data && a->bias.data;
}

static void candidate_free(candidate *c) {
    dv_pass_free(c->pass);
    block_free(&c->packed);
    block_free(&c->workspace);
}

/* A maker that cannot make the pass after all is no candidate. */
static dv_status candidate_init(candidate *c, const dv_choice *choice, const dv_pass_maker *maker, dv_error *error) {
    dv_status status = maker->make(&c->pass, choice->kind, &choice->shape, "a convolution", error);
    if (status == DV_ERROR_UNSUPPORTED)
        return DV_OK;
    DV_TRY(status);
    c->packed = filled(c->pass->weights_bytes);
    c->workspace = filled(c->pass->workspace_bytes);
    return c->packed.data && c->workspace.data ? DV_OK
                                               : dv_fail(error, DV_ERROR_MEMORY, "no memory to measure convolutions");
}

static double clock_seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Time that has passed, and the processor's that this process has had. */
typedef struct moment {
    double passed, had;
} moment;

static moment now(void) {
    return (moment){clock_seconds(CLOCK_MONOTONIC), clock_seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

/* How long something took. A thread of it may have waited for the others a little; what is beyond that it waited for
 * other processes, on a machine that is busy. */
static double seconds_between(moment begin, moment end, int threads) {
    const double waiting = 1.25;
    double passed = end.passed - begin.passed, had = (end.had - begin.had) / threads;
    return passed < waiting * had || had <= 0 ? passed : waiting * had;
}

/* Weights are packed at each use of a layer. */
static dv_status run_once(candidate *c, const arrays *a, dv_error *error) {
    dv_pass_arrays given = {.src = a->src.data,
                            .dst = a->dst.data,
                            .gradient = a->gradient.data,
                            .bias = a->bias.data,
                            .workspace = c->workspace.data};
    if (c->pass->kind != DV_PASS_BACKWARD_WEIGHTS)
        DV_TRY(
            dv_pass_pack_weights(c->pass, a->weights.data, c->packed.data, c->workspace.data, &given.weights, error));
    return dv_pass_run(c->pass, &given, error);
}

/* Whether it was faster than ever before, by more than the clock's noise. */
static dv_status run_round(candidate *c, const arrays *a, bool *improved, dv_error *error) {
    moment begin = now(), last = begin;
    double before = c->seconds;
    while (last.passed - begin.passed < round_seconds) {
        DV_TRY(run_once(c, a, error));
        moment end = now();
        double seconds = seconds_between(last, end, c->pass->threads);
        c->seconds = c->seconds > 0 && c->seconds < seconds ? c->seconds : seconds;
        last = end;
    }
    *improved = *improved || c->seconds < before * 0.95;
    return DV_OK;
}

/* Whether a candidate, which has run before, is so slow that no further round makes it the fastest. */
static bool is_hopeless(const candidate *candidates, const candidate *c) {
    for (int m = 0; m < DV_PASS_MAKERS; m++)
        if (candidates[m].seconds > 0 && c->seconds > HOPELESS * candidates[m].seconds)
            return true;
    return false;
}

/* The first round warms up. On a machine that is busy with something else the shortest time comes late: as long as
 * one of them becomes shorter, another round follows. Passes that take long are measured well by fewer of them. */
static dv_status run_rounds(candidate *candidates, const arrays *a, dv_error *error) {
    bool improved = true;
    moment begin = now();
    for (int round = 0; round <= ROUNDS || (improved && round <= MOST_ROUNDS); round++) {
        if (round > 1 && now().passed - begin.passed > most_seconds)
            break;
        improved = false;
        for (int m = 0; m < DV_PASS_MAKERS; m++)
            if (candidates[m].pass && (round == 0 || !is_hopeless(candidates, &candidates[m])))
                DV_TRY(run_round(&candidates[m], a, &improved, error));
    }
    return DV_OK;
}

static dv_status measure(dv_choice *choice, candidate *candidates, arrays *a, dv_error *error) {
    if (!arrays_init(a, &choice->shape))
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to measure convolutions");
    for (int m = 0; m < DV_PASS_MAKERS; m++)
        if (dv_pass_makers[m]->suits(choice->kind, &choice->shape))
            DV_TRY(candidate_init(&candidates[m], choice, dv_pass_makers[m], error));
    DV_TRY(run_rounds(candidates, a, error));
    for (int m = 0; m < DV_PASS_MAKERS; m++)
        if (candidates[m].pass) {
            choice->seconds[m] = candidates[m].seconds;
            choice->bytes[m] = candidates[m].pass->weights_bytes + candidates[m].pass->workspace_bytes;
        }
    return DV_OK;
}

dv_status dv_choice_measure(dv_choice *choice, dv_error *error) {
    candidate candidates[DV_PASS_MAKERS] = {{0}};
    arrays a = {0};
    dv_status status = measure(choice, candidates, &a, error);
    for (int m = 0; m < DV_PASS_MAKERS; m++)
        candidate_free(&candidates[m]);
    arrays_free(&a);
    return status;
}
