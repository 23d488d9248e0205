/* A list of jobs, measured one after the other: one figure each, a line of JSON. Lines go to standard output, as they
 * are or as rows of a table, and into a file. A job whose line is in the file already is not measured again, so that a
 * call that was killed goes on where it was. */
#ifndef DV_CLI_BENCH_SESSION_H
#define DV_CLI_BENCH_SESSION_H

#include "bench.h"
#include "live.h"

#include <division/tools/json.h>

enum { BENCH_LINE_BYTES = 2048, BENCH_MOST_JOBS = 512 };

/* ---- lines --------------------------------------------------------------------------------- */

/* The lines of one benchmark: those that its file had, and those that were added. */
typedef struct bench_output {
    int descriptor; /* of the file; -1: there is none */
    char *text;     /* all lines, each with its newline and a zero behind the last; owned, NULL: no line yet */
    size_t bytes;
} bench_output;

/* Opens the file, or makes it; NULL for `path`: none. A last line without an end was cut off by a kill: it is dropped.
 * As long as it is open no other call can write to it. Exit codes. */
int bench_output_open(bench_output *output, const char *path);
void bench_output_close(bench_output *output);

/* The last line that begins with `head`, or NULL. */
const char *bench_output_find(const bench_output *output, const char *head);

/* Adds a line, without its newline. It is in the file before this returns. */
int bench_output_add(bench_output *output, const char *line);

/* The number or the text behind a key of a line; NaN, or an empty text, where there is none. */
double bench_line_number(const char *line, const char *key);
void bench_line_text(const char *line, const char *key, char *text, size_t bytes);

/* ---- jobs ---------------------------------------------------------------------------------- */

typedef struct bench_session bench_session;
typedef struct bench_job bench_job;

/* What a benchmark does with a job. */
typedef struct bench_kind {
    /* Whether it is done already; its line, if it has one and it is there. */
    int (*known)(const bench_session *session, const bench_job *job);
    const char *(*find)(const bench_job *job);
    /* Seconds that it takes, if an image takes so many; 0: nothing is run for it. */
    double (*seconds)(const bench_session *session, const bench_job *job, double per_image);
    /* Does it and writes the line. It may be left empty. Exit codes. */
    int (*measure)(bench_session *session, const bench_job *job, char line[BENCH_LINE_BYTES]);
    /* A table for people; NULL: nothing is shown. */
    void (*heading)(int width);
    void (*row)(const char *line, int width);
    const char *figure; /* the key behind the beginning of a line: lines of other benchmarks have another */
} bench_kind;

struct bench_job {
    const bench_kind *kind;
    bench_output *output;
    bench_network network;
    const char *base;  /* method that this one is compared with */
    int steps, rounds; /* 0 for steps: as many as make up a round */
    size_t planned;    /* bytes of its plan */
    double seconds;    /* expected; without an estimate, in proportion */
    const void *what;  /* more of it that the kind knows */
    int number;        /* and which one of several */
};

struct bench_session {
    bench_job jobs[BENCH_MOST_JOBS];
    int count;
    int json, quiet;   /* lines as they are; neither lines nor rows */
    double most;       /* --limit: GB that a process may take, 0 for what is available */
    bench_worker base; /* of throughput: it goes on from job to job */
    bench_network base_network;
    int base_steps;
    cli_live line; /* progress, on stderr */
};

/* Begins a session; its memory is the caller's. */
void bench_session_begin(bench_session *session);

/* Adds a job. Returns CLI_CONTINUE, or an exit code after a message. */
int bench_session_add(bench_session *session, const bench_job *job);

/* Adds every combination of batches and methods. A wrong network or method is told here. */
int bench_session_grid(bench_session *session, const bench_job *job, const bench_batches *batches,
                       const bench_methods *methods);

/* Trains a few images of each network that has something to measure, and says what all jobs should take. Seconds go to
 * `seconds`. Exit codes. */
int bench_session_estimate(bench_session *session, double *seconds);

/* Measures what is not known and shows all lines in the order of the jobs. */
int bench_session_run(bench_session *session);

/* The beginning of a line: opens the object. By it and the key behind it a line is found: of a job, or of a job's
 * benchmark for another network. */
void bench_line_begin(dv_json *json, const bench_network *network);
int bench_known_line(const bench_session *session, const bench_job *job);
const char *bench_find_line(const bench_job *job);
const char *bench_find_line_of(const bench_job *job, const bench_network *network);

/* ---- commands ------------------------------------------------------------------------------ */

/* What `bench memory` and `bench throughput` read from the command line, beside the network. */
typedef struct bench_lists {
    const char *batches, *methods, *memory, *out;
} bench_lists;

#define BENCH_SESSION_OPTIONS(session, lists)                                                            \
    {"batch", "N[,N...]", "images per step", CLI_TEXT(&(lists)->batches)},                               \
        {"methods", "LIST", "how values are kept: methods, with commas between them; all for every one", \
         CLI_TEXT(&(lists)->methods)},                                                                   \
        BENCH_BUDGETS_OPTION(&(lists)->memory),                                                          \
        {"out", "FILE", "add the lines to this file as well; what it has is not measured again",         \
         CLI_TEXT(&(lists)->out)},                                                                       \
    {                                                                                                    \
        "json", NULL, "print one JSON object per line", CLI_FLAG(&(session)->json)                       \
    }

#define BENCH_LIMIT_OPTION(session) \
    { "limit", "GB", "what a process may take, 0 for what is available", CLI_NUMBER(&(session)->most, 0, 1e6) }

/* Measures all that the lists say. Exit codes. */
int bench_lists_run(const bench_lists *lists, bench_session *session, const bench_job *job);

extern const bench_kind bench_memory_kind, bench_throughput_kind;

#endif
