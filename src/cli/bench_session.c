/* Jobs one after the other, what is left of them, and what they take. */
#include "bench_session.h"

#include "cli.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { ESTIMATE_BATCH = 16, MOST_ESTIMATES = 16 };

static const double START_SECONDS = 1; /* of a process */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- what a line begins with --------------------------------------------------------------- */

void bench_line_begin(dv_json *json, const bench_network *network) {
    dv_json_object(json, NULL);
    dv_json_text(json, "model", network->model);
    dv_json_integer(json, "batch", network->batch);
    dv_json_text(json, "method", network->method);
    dv_json_text(json, "precision", bench_precisions[network->precision]);
    if (network->side > 0)
        dv_json_integer(json, "side", network->side);
    if (network->classes > 0)
        dv_json_integer(json, "classes", network->classes);
    if (network->threads > 0)
        dv_json_integer(json, "threads", network->threads);
    if (network->freeze != NULL && network->freeze[0] != '\0')
        dv_json_text(json, "freeze", network->freeze);
}

const char *bench_find_line_of(const bench_job *job, const bench_network *network) {
    char head[BENCH_LINE_BYTES];
    dv_json json;
    dv_json_to_buffer(&json, head, sizeof head);
    bench_line_begin(&json, network);
    (void)dv_json_finish(&json, NULL); /* a beginning alone: it is open still */
    size_t used = strlen(head);
    snprintf(head + used, sizeof head - used, ", \"%s\": ", job->kind->figure);
    return bench_output_find(job->output, head);
}

const char *bench_find_line(const bench_job *job) {
    return bench_find_line_of(job, &job->network);
}

int bench_known_line(const bench_session *session, const bench_job *job) {
    (void)session;
    return job->kind->find(job) != NULL;
}

/* ---- the list ------------------------------------------------------------------------------ */

void bench_session_begin(bench_session *session) {
    memset(session, 0, sizeof *session);
    session->line = cli_live_new(stderr, 0);
}

int bench_session_add(bench_session *session, const bench_job *job) {
    if (session->count == BENCH_MOST_JOBS)
        return cli_wrong_call("more than %d configurations in one call: give fewer", BENCH_MOST_JOBS);
    session->jobs[session->count++] = *job;
    return CLI_CONTINUE;
}

/* Plans the network: mistakes are found before anything is run. */
static int check(const bench_network *network, size_t *planned) {
    dv_graph *graph;
    dv_plan *plan;
    dv_error error;
    if (bench_plan(network, &graph, &plan, &error) != DV_OK)
        return cli_report(&error);
    *planned = dv_plan_totals(plan).planned;
    dv_plan_free(plan);
    dv_graph_free(graph);
    return CLI_CONTINUE;
}

int bench_session_grid(bench_session *session, const bench_job *job, const bench_batches *batches,
                       const bench_methods *methods) {
    bench_job one = *job;
    one.base = methods->at[0];
    for (int b = 0; b < batches->count; b++)
        for (int m = 0; m < methods->count; m++) {
            one.network.batch = batches->at[b];
            one.network.method = methods->at[m];
            int code = check(&one.network, &one.planned);
            if (code == CLI_CONTINUE)
                code = bench_session_add(session, &one);
            if (code != CLI_CONTINUE)
                return code;
        }
    return CLI_CONTINUE;
}

/* ---- estimating ---------------------------------------------------------------------------- */

/* Seconds that an image of a network takes. */
typedef struct pace {
    const char *model;
    int precision, side;
    double per_image;
} pace;

static int measure_pace(const bench_network *network, double *per_image) {
    bench_network few = *network;
    bench_worker worker;
    bench_answer answer;
    few.batch = network->batch < ESTIMATE_BATCH ? network->batch : ESTIMATE_BATCH;
    few.method = "division";
    int code = bench_worker_start(&worker, &few);
    for (int step = 0; step < 2 && code == CLI_SUCCESS; step++) /* the first finds everything cold */
        code = bench_worker_train(&worker, 1, &answer);
    if (code == CLI_SUCCESS)
        code = bench_worker_end(&worker);
    if (code == CLI_SUCCESS)
        *per_image = answer.seconds / few.batch;
    return code;
}

/* The pace of a network, measured if it is not among the `count` known. */
static int pace_of(const bench_network *network, pace *known, int *count, double *per_image) {
    for (int i = 0; i < *count; i++)
        if (strcmp(known[i].model, network->model) == 0 && known[i].precision == network->precision &&
            known[i].side == network->side) {
            *per_image = known[i].per_image;
            return CLI_SUCCESS;
        }
    int code = measure_pace(network, per_image);
    if (code == CLI_SUCCESS && *count < MOST_ESTIMATES)
        known[(*count)++] = (pace){network->model, network->precision, network->side, *per_image};
    return code;
}

int bench_session_estimate(bench_session *session, double *seconds) {
    pace known[MOST_ESTIMATES];
    int count = 0, code = CLI_SUCCESS;
    *seconds = 0;
    for (int i = 0; i < session->count && code == CLI_SUCCESS; i++) {
        bench_job *job = &session->jobs[i];
        double per_image = 0;
        if (job->kind->known(session, job) || job->kind->seconds(session, job, 1) <= 0)
            continue;
        code = pace_of(&job->network, known, &count, &per_image);
        job->seconds = START_SECONDS + job->kind->seconds(session, job, per_image);
        *seconds += job->seconds;
    }
    return code;
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* How far it is. */
typedef struct progress {
    double start, done, left; /* when it began; expected seconds of what is done and of what is left */
} progress;

static progress begin_progress(bench_session *session) {
    progress p = {.start = now()};
    for (int i = 0; i < session->count; i++) {
        bench_job *job = &session->jobs[i];
        if (job->seconds <= 0)
            job->seconds = job->kind->seconds(session, job, 1);
        p.left += job->kind->known(session, job) ? 0 : job->seconds;
    }
    return p;
}

/* What is left takes as much longer, or less, than expected as what is done did. */
static void show_progress(bench_session *session, const progress *p, int i) {
    const bench_network *n = &session->jobs[i].network;
    char left[CLI_LEFT_TEXT];
    if (!session->line.live && !cli_live_due(&session->line))
        return;
    double seconds = p->done > 0 ? (now() - p->start) / p->done * p->left : NAN;
    cli_live_draw(&session->line, "%d/%d  %s, batch %d, %s, %s%s", i + 1, session->count, n->model, n->batch, n->method,
                  bench_precisions[n->precision], cli_left_text(seconds, left));
}

static int width_of(const bench_session *session) {
    size_t width = strlen("method");
    for (int i = 0; i < session->count; i++) {
        size_t length = strlen(session->jobs[i].network.method);
        width = length > width ? length : width;
    }
    return (int)width;
}

/* Shows the line of a job; a heading goes before the first of a kind. */
static void show_line(bench_session *session, int i, const char *line) {
    const bench_kind *kind = session->jobs[i].kind;
    int width = width_of(session);
    if (session->quiet || line == NULL || kind->row == NULL)
        return;
    cli_live_wipe(&session->line);
    if (session->json)
        printf("%.*s\n", (int)strcspn(line, "\n"), line);
    else if (i == 0 || session->jobs[i - 1].kind != kind)
        kind->heading(width);
    if (!session->json)
        kind->row(line, width);
    cli_flush();
}

static int do_job(bench_session *session, progress *p, int i) {
    const bench_job *job = &session->jobs[i];
    char line[BENCH_LINE_BYTES] = "";
    show_progress(session, p, i);
    int code = job->kind->measure(session, job, line);
    if (code == CLI_SUCCESS && line[0] != '\0')
        code = bench_output_add(job->output, line);
    p->done += job->seconds;
    p->left -= job->seconds;
    return code;
}

int bench_session_run(bench_session *session) {
    progress p = begin_progress(session);
    int code = CLI_SUCCESS;
    for (int i = 0; i < session->count && code == CLI_SUCCESS; i++) {
        const bench_job *job = &session->jobs[i];
        if (!job->kind->known(session, job))
            code = do_job(session, &p, i);
        if (code == CLI_SUCCESS && job->kind->find != NULL)
            show_line(session, i, job->kind->find(job));
    }
    cli_live_wipe(&session->line);
    int ended = bench_worker_end(&session->base);
    return code == CLI_SUCCESS ? ended : code;
}

/* ---- commands ------------------------------------------------------------------------------ */

/* The methods of each batch: what a budget chooses differs from one to the other. */
static int add_batches(const bench_lists *lists, bench_session *session, const bench_job *job) {
    static bench_methods methods[BENCH_MOST_ITEMS]; /* jobs point into them */
    static const bench_images made_up;
    bench_batches batches;
    int code = bench_batches_read(&batches, lists->batches);
    for (int i = 0; i < batches.count && code == CLI_CONTINUE; i++) {
        const bench_batches one = {.at = {batches.at[i]}, .count = 1};
        bench_network network = job->network;
        network.batch = batches.at[i];
        code = bench_methods_read(&methods[i], lists->methods);
        if (code == CLI_CONTINUE)
            code = bench_methods_within(&methods[i], lists->memory, &network, &made_up);
        if (code == CLI_CONTINUE)
            code = bench_session_grid(session, job, &one, &methods[i]);
    }
    return code;
}

int bench_lists_run(const bench_lists *lists, bench_session *session, const bench_job *job) {
    bench_use_threads(&job->network);
    int code = add_batches(lists, session, job);
    if (code != CLI_CONTINUE)
        return code;
    code = bench_output_open(job->output, lists->out);
    if (code == CLI_SUCCESS)
        code = bench_session_run(session);
    bench_output_close(job->output);
    return code == CLI_SUCCESS ? cli_finish() : code;
}
