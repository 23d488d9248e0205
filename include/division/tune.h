/* Choosing by measurement what computes each convolution of a graph.
 *
 *     dv_tune_options tune = dv_tune_options_default();
 *     dv_graph_tune(graph, &plan_options, &tune, &result, &error);
 *     dv_plan_new(graph, &plan_options, &plan, &error);
 *
 * Which way of computing a convolution is fastest depends on the processor: of those that suit, each is run for a few
 * milliseconds and the fastest is taken. What was measured is kept in a file of the user's, so that it is measured
 * once. The same choices give the same bits, other ones differ by rounding.
 *
 * - Threads: A graph is tuned by one thread, before it has plans. Choices are for the number of threads that is in use.
 * - Fork: division/threads.h says what a child may do.
 * - Freeing: There is nothing to free: a graph owns its choices. */
#ifndef DIVISION_TUNE_H
#define DIVISION_TUNE_H

#include <division/export.h>
#include <division/graph.h>
#include <division/status.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dv_tune_mode {
    DV_TUNE_OFF,   /* nothing is measured: a rule by instruction set decides */
    DV_TUNE_CACHE, /* what the user's file does not have is measured, and added to it */
    DV_TUNE_AGAIN  /* everything is measured, and replaces what the file has */
} dv_tune_mode;

typedef struct dv_tune_options {
    dv_tune_mode mode;
    int prefer_speed; /* true: a choice may raise the planned bytes */
    int everything;   /* true: what there is no choice for is measured too */
    const char *kept; /* a file of choices, as dv_graph_write_passes wrote it, that go before everything; NULL: none */
    size_t room; /* choices may raise the planned bytes to so many, whatever goes first, and no further; 0: not said */
} dv_tune_options;

/* DV_TUNE_CACHE, and memory before speed. */
DV_API dv_tune_options dv_tune_options_default(void);

/* "off", "cache" or "again", the latter two also with ":prefer=speed". NULL or nothing: what the environment variable
 * DV_TUNE says, or "cache". Leaves `kept` as it is. */
DV_API dv_status dv_tune_parse(const char *text, dv_tune_options *options, dv_error *error);

/* What tuning did. */
typedef struct dv_tune_result {
    size_t passes;   /* distinct ones that there was a choice for */
    size_t measured; /* of them: now */
    size_t changed;  /* whose choice is not that of the rule */
    double seconds;
} dv_tune_result;

/* Chooses for all passes of a finished graph that has no plans yet. With `options`, those of the plan that is to be
 * made, planned bytes do not rise above those of the rule's choices, unless speed is preferred. A file of the user's
 * that is damaged, foreign or can't be written is no failure: what it does not tell is measured. `result` may be NULL.
 */
DV_API dv_status dv_graph_tune(dv_graph *graph, const dv_plan_options *options, const dv_tune_options *tune,
                               dv_tune_result *result, dv_error *error);

/* Something that can compute a pass. */
typedef struct dv_pass_candidate {
    const char *name; /* "winograd". Static */
    double seconds;   /* of a run; 0: not measured */
    size_t bytes;     /* of workspace, likewise */
} dv_pass_candidate;

enum { DV_PASS_TEXT_BYTES = 256, DV_PASS_MOST_CANDIDATES = 8 };

/* One direction of one shape of convolution, which several layers may have; or that of one layer, which works while
 * memory is crowded and so has a choice of its own. */
typedef struct dv_pass_row {
    char text[DV_PASS_TEXT_BYTES]; /* "forward f32 threads 2 images 8 ..." */
    const char *first_layer;       /* that has it; the graph's. NULL: none has it any more */
    size_t uses, runs;             /* layers that have it; runs of a step, of all of them */
    double operations;             /* multiplications and additions of a run */
    int candidate_count, chosen;
    dv_pass_candidate candidates[DV_PASS_MOST_CANDIDATES];
} dv_pass_row;

/* The index-th distinct pass of a finished graph. False past the last. */
DV_API int dv_graph_pass_at(const dv_graph *graph, size_t index, dv_pass_row *row);

/* Writes the choices of a graph to a file. */
DV_API dv_status dv_graph_write_passes(const dv_graph *graph, const char *path, dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
