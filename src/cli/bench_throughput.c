/* division bench throughput: images per second of training with each method.
 *
 * Every method has a process of its own, and so has the one that the others are compared with, which stays for all of
 * them. Both are warmed up, then they take turns, round after round, one at a time, and each figure is the median over
 * the rounds: on a shared machine only what was measured close together can be compared. */
#include "bench_session.h"

#include "cli.h"

#include <string.h>

enum { MOST_ROUNDS = 101, MOST_STEPS = 10000, CELL_BYTES = 32 };

static const double ROUND_SECONDS = 1; /* that a round of the first method takes, if the steps are not given */

/* What the rounds of a job found. */
typedef struct rounds {
    double speed[MOST_ROUNDS];    /* images per second */
    double relative[MOST_ROUNDS]; /* to the base of the same round */
} rounds;

/* ---- measuring ----------------------------------------------------------------------------- */

/* Starts a process and has it make two steps: the first finds everything cold, the second one's time goes to `took`. */
static int warm_up(bench_worker *worker, const bench_network *network, double *took) {
    bench_answer answer = {.seconds = 1};
    int code = bench_worker_start(worker, network);
    for (int step = 0; step < 2 && code == CLI_SUCCESS; step++)
        code = bench_worker_train(worker, 1, &answer);
    *took = answer.seconds;
    return code;
}

static int same_ground(const bench_network *a, const bench_network *b) {
    return strcmp(a->model, b->model) == 0 && strcmp(a->method, b->method) == 0 && a->batch == b->batch &&
           a->precision == b->precision;
}

/* Has the base of the job ready. It stays until a job has another one. */
static int prepare_base(bench_session *session, const bench_job *job) {
    bench_network base = job->network;
    double took;
    base.method = job->base;
    if (session->base.process != 0 && same_ground(&base, &session->base_network))
        return CLI_SUCCESS;
    int code = bench_worker_end(&session->base);
    session->base_network = base;
    if (code == CLI_SUCCESS)
        code = warm_up(&session->base, &session->base_network, &took);
    if (code == CLI_SUCCESS) {
        double steps = job->steps > 0 ? job->steps : ROUND_SECONDS / took;
        session->base_steps = steps < 1 ? 1 : steps > MOST_STEPS ? MOST_STEPS : (int)steps;
    }
    return code;
}

static int speed_of(bench_worker *worker, int steps, double *speed) {
    bench_answer answer;
    int code = bench_worker_train(worker, steps, &answer);
    if (code == CLI_SUCCESS)
        *speed = (double)worker->network->batch * steps / answer.seconds;
    return code;
}

/* Base and worker by turns; every other round begins with the other one. Without a worker the base is measured. */
static int measure_round(bench_session *session, bench_worker *worker, int round, rounds *found) {
    bench_worker *both[2] = {&session->base, worker};
    double speeds[2] = {0};
    int count = worker != NULL ? 2 : 1;
    for (int turn = 0; turn < count; turn++) {
        int i = (turn + round) % count;
        int code = speed_of(both[i], session->base_steps, &speeds[i]);
        if (code != CLI_SUCCESS)
            return code;
    }
    found->speed[round] = speeds[count - 1];
    found->relative[round] = speeds[count - 1] / speeds[0];
    return CLI_SUCCESS;
}

static void write_line(const bench_job *job, rounds *found, char *line) {
    dv_json json;
    dv_json_to_buffer(&json, line, BENCH_LINE_BYTES);
    bench_line_begin(&json, &job->network);
    dv_json_number(&json, "images_per_second", bench_median(found->speed, job->rounds));
    dv_json_number(&json, "relative", bench_median(found->relative, job->rounds));
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* a line has room for the longest names */
}

static int measure(bench_session *session, const bench_job *job, char line[BENCH_LINE_BYTES]) {
    static rounds found;
    bench_worker worker = {.process = 0};
    int is_base = strcmp(job->network.method, job->base) == 0;
    double took;
    int code = prepare_base(session, job);
    if (code == CLI_SUCCESS && !is_base)
        code = warm_up(&worker, &job->network, &took);
    for (int round = 0; round < job->rounds && code == CLI_SUCCESS; round++)
        code = measure_round(session, is_base ? NULL : &worker, round, &found);
    int ended = bench_worker_end(&worker);
    code = code == CLI_SUCCESS ? ended : code;
    if (code == CLI_SUCCESS)
        write_line(job, &found, line);
    return code;
}

/* Two steps of warming up, and rounds of the method and of its base. */
static double seconds(const bench_session *session, const bench_job *job, double per_image) {
    (void)session;
    double step = per_image * job->network.batch, steps = job->steps > 0 ? job->steps : 1;
    double round = steps * step > ROUND_SECONDS || job->steps > 0 ? steps * step : ROUND_SECONDS;
    return 2 * step + 2 * job->rounds * round;
}

/* ---- printing ------------------------------------------------------------------------------ */

static void print_heading(int width) {
    printf("%-19s %6s  %-*s %-4s %10s %9s\n", "model", "batch", width, "method", "", "images/s", "relative");
}

static void print_row(const char *line, int width) {
    char model[BENCH_METHODS_BYTES], method[BENCH_METHODS_BYTES], precision[CELL_BYTES];
    bench_line_text(line, "model", model, sizeof model);
    bench_line_text(line, "method", method, sizeof method);
    bench_line_text(line, "precision", precision, sizeof precision);
    printf("%-19s %6.0f  %-*s %-4s %10.2f %9.3f\n", model, bench_line_number(line, "batch"), width, method, precision,
           bench_line_number(line, "images_per_second"), bench_line_number(line, "relative"));
}

const bench_kind bench_throughput_kind = {.known = bench_known_line,
                                          .find = bench_find_line,
                                          .seconds = seconds,
                                          .measure = measure,
                                          .heading = print_heading,
                                          .row = print_row,
                                          .figure = "images_per_second"};

/* ---- the command --------------------------------------------------------------------------- */

int cli_bench_throughput(int argc, char **argv) {
    static bench_session session;
    bench_output output;
    bench_job job = {.kind = &bench_throughput_kind, .output = &output, .network = {.model = "resnet50"}, .rounds = 5};
    bench_lists lists = {.batches = "32", .methods = "none,division"};
    bench_session_begin(&session);
    const dv_option options[] = {
        BENCH_NETWORK_OPTIONS(&job.network),
        BENCH_SESSION_OPTIONS(&session, &lists),
        {"rounds", "N", "rounds, over which the median is taken", CLI_INTEGER(&job.rounds, 1, MOST_ROUNDS)},
        {"steps", "N", "steps per round; 0 for about a second of them", CLI_INTEGER(&job.steps, 0, MOST_STEPS)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "bench throughput",
        .summary =
            "Trains a network with each method in a process of its own, by turns with none in rounds, and prints\n"
            "the median of images per second, and of that relative to none's of the same round (or to the\n"
            "first method's, where none is not among them). Progress goes to stderr.\n",
        .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    return code == CLI_CONTINUE ? bench_lists_run(&lists, &session, &job) : code;
}
