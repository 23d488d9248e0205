/* What carries messages between ranks: a table of functions, which a plugin has. A plugin needs nothing of the library:
 * neither its functions nor its types but those here.
 *
 * All functions but `library`, `abort` and `close` return 0, or else another number and a line in `text`. Calls of one
 * context are made by one thread at a time, but not always by the same. All ranks start the same transfers in the same
 * order. */
#ifndef DV_PARALLEL_ENGINE_H
#define DV_PARALLEL_ENGINE_H

#include <stddef.h>
#include <stdint.h>

enum { DV_ENGINE_VERSION = 1, DV_ENGINE_TEXT_BYTES = 200 };

/* The name of the table in a plugin. */
#define DV_ENGINE_SYMBOL "dv_engine_table"

/* What is added up. The sums of all ranks have the same bits. */
typedef enum dv_sum_type { DV_SUM_F32, DV_SUM_BF16, DV_SUM_F64, DV_SUM_TYPES } dv_sum_type;

/* A transfer under way: the engine's own. */
typedef struct dv_request {
    uint64_t words[2];
} dv_request;

typedef struct dv_engine {
    int version;                  /* DV_ENGINE_VERSION */
    const char *(*library)(void); /* the name and version of what is behind it; static, to be had before `open` */

    /* Joins the others. `argument` is whatever the caller of dv_world_new has for it. */
    int (*open)(void *argument, void **context, size_t *rank, size_t *ranks, char *text);

    /* Begin a transfer. `data` must stay where it is until it has ended.
     *     sum        data [count] becomes the sum over all ranks
     *     broadcast  data [bytes] becomes that of rank 0
     *     gather     all [ranks][bytes] becomes what each rank has in own [bytes] */
    int (*sum)(void *context, dv_sum_type type, void *data, size_t count, dv_request *request, char *text);
    int (*broadcast)(void *context, void *data, size_t bytes, dv_request *request, char *text);
    int (*gather)(void *context, const void *own, size_t bytes, void *all, dv_request *request, char *text);

    /* Whether a transfer has ended; moves along all that are under way. */
    int (*test)(void *context, dv_request *request, int *ended, char *text);

    /* Who else has lost patience: says so to the others, waits a moment, and sets present [ranks] for those who have
     * said so too, and for this rank. */
    int (*call_roll)(void *context, unsigned char *present, char *text);

    void (*abort)(void *context, int code); /* ends all ranks */
    void (*close)(void *context);           /* leaves in good order */
} dv_engine;

#endif
