/* What the benchmarks of whole networks share: which network is meant, lists on the command line, and processes
 * that train it, one for each configuration, so that none sees what another left behind. */
#ifndef DV_CLI_BENCH_H
#define DV_CLI_BENCH_H

#include "options.h"

#include <division/graph.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* One configuration. 0 for classes, side and threads means the model's own, or OpenMP's. */
typedef struct bench_network {
    const char *model, *method, *freeze; /* not owned; NULL for freeze: nothing is */
    const char *tune;                    /* NULL: the default */
    int batch, precision, classes, side, threads;
    int keep_gradients; /* they are read; else parameters are updated as in training */
} bench_network;

/* The words of `precision`: bench_precisions[network.precision]. */
extern const char *const bench_precisions[];

/* The lines of an option table that say which network; method and, where there are several, batches are each command's
 * own. */
#define BENCH_NETWORK_OPTIONS(network)                                                                            \
    cli_text_option("model", NULL, &(network)->model), cli_word_option("precision", NULL, &(network)->precision), \
        cli_text_option("freeze", NULL, &(network)->freeze), cli_text_option("tune", NULL, &(network)->tune),     \
        cli_integer_option("classes", "classes, 0 for the model's own", &(network)->classes),                     \
        cli_integer_option("threads", NULL, &(network)->threads), {                                               \
        "side", "N", "side of the images, 0 for the model's own", CLI_INTEGER(&(network)->side, 0, 8192)          \
    }

enum { BENCH_MOST_BATCH = 1 << 20 };

/* ---- lists --------------------------------------------------------------------------------- */

enum { BENCH_MOST_ITEMS = 16, BENCH_METHODS_BYTES = 8192, BENCH_CHOSEN_BYTES = 1536 };

/* Methods, separated by commas. "none,division:block=8,bits=4" is two of them: "bits=4" is no name of a method and
 * belongs to the one before it. "all" is every method there is, with its defaults. Others are compared with `none`: it
 * comes first, wherever it stands in the text. */
typedef struct bench_methods {
    char text[BENCH_METHODS_BYTES];
    const char *at[BENCH_MOST_ITEMS]; /* into text, or what was chosen */
    int count;
    char budgets[BENCH_METHODS_BYTES], chosen[BENCH_MOST_ITEMS][BENCH_CHOSEN_BYTES];
} bench_methods;

typedef struct bench_batches {
    int at[BENCH_MOST_ITEMS], count;
} bench_batches;

/* Read what --methods and --batch say. Return CLI_CONTINUE, or an exit code after a message. */
int bench_methods_read(bench_methods *methods, const char *text);
int bench_batches_read(bench_batches *batches, const char *text);

/* Images and weights that a choice is made with; NULL: made-up images, and the usual ones. Not owned. */
typedef struct bench_images {
    const char *data, *normalise, *init;
} bench_images;

/* Adds what 'division train' would choose for each budget of `memory`, a list with commas, or NULL: none. */
int bench_methods_within(bench_methods *methods, const char *memory, const bench_network *network,
                         const bench_images *images);

/* Its line in a table of options. */
#define BENCH_BUDGETS_OPTION(memory)                                                                                  \
    {                                                                                                                 \
        "memory", "BYTES[,BYTES...]", "measure what --memory chooses for training in so many bytes, too: 600MB, 50%", \
            CLI_TEXT(memory)                                                                                          \
    }

/* Characters of the longest, and of the heading "method". */
int bench_methods_width(const bench_methods *methods);

double bench_median(double *values, int count); /* sorts them */

/* ---- planning ------------------------------------------------------------------------------ */

/* Uses as many threads as the network says from here on: its plan depends on them. */
void bench_use_threads(const bench_network *network);

/* The plan of a network, as it is trained. The caller frees both; on failure neither is there. */
dv_status bench_plan(const bench_network *network, dv_graph **graph, dv_plan **plan, dv_error *error);

/* ---- processes that train ------------------------------------------------------------------ */

/* A process that trains one network when told to: `division bench worker`. It has the standard error of this one,
 * and says there what went wrong. */
typedef struct bench_worker {
    const bench_network *network; /* not owned */
    pid_t process;                /* 0: there is none */
    FILE *requests, *answers;
} bench_worker;

/* What a worker says after some steps. */
typedef struct bench_answer {
    double seconds;    /* that the steps took */
    size_t peak_bytes; /* the most memory it has had resident so far */
} bench_answer;

/* Starts this program again as a worker; ends it again, waiting until it has. Exit codes. */
int bench_worker_start(bench_worker *worker, const bench_network *network);
int bench_worker_end(bench_worker *worker);

/* Has it train for so many steps and waits. If it fails, or has failed since it was started, it is ended, and the
 * exit code is its own. */
int bench_worker_train(bench_worker *worker, int steps, bench_answer *answer);

#endif
