/* division bench throughput: images per second of training with each method.
 *
 * Every method has a process of its own, all prepared and warmed up before the first is measured. Then they take
 * turns, round after round, one at a time, and each figure is the median over the rounds: on a shared machine only
 * what was measured close together can be compared. */
#include "bench.h"

#include "cli.h"

#include <division/tools/json.h>

enum { MOST_ROUNDS = 101, MOST_STEPS = 10000 };

static const double ROUND_SECONDS = 1; /* that a round of the first method takes, if the steps are not given */

/* The methods, what measures them, and what was measured. */
typedef struct contest {
    bench_network networks[BENCH_MOST_ITEMS];
    bench_worker workers[BENCH_MOST_ITEMS];
    double speed[BENCH_MOST_ITEMS][MOST_ROUNDS];    /* images per second */
    double relative[BENCH_MOST_ITEMS][MOST_ROUNDS]; /* to the base of the same round */
    int count, base, rounds, steps;
} contest;

/* ---- measuring ----------------------------------------------------------------------------- */

/* Two steps: the first finds everything cold. The second one's time says how many make up a round. */
static int warm_up(contest *c, int i) {
    bench_answer answer;
    int code = bench_worker_start(&c->workers[i], &c->networks[i]);
    for (int step = 0; step < 2 && code == CLI_SUCCESS; step++)
        code = bench_worker_train(&c->workers[i], 1, &answer);
    if (code == CLI_SUCCESS && c->steps == 0) {
        double steps = ROUND_SECONDS / answer.seconds;
        c->steps = steps < 1 ? 1 : steps > MOST_STEPS ? MOST_STEPS : (int)steps;
    }
    return code;
}

/* Every round begins with another method. */
static int measure_round(contest *c, int round) {
    bench_answer answer;
    for (int turn = 0; turn < c->count; turn++) {
        int i = (turn + round) % c->count;
        int code = bench_worker_train(&c->workers[i], c->steps, &answer);
        if (code != CLI_SUCCESS)
            return code;
        c->speed[i][round] = (double)c->networks[i].batch * c->steps / answer.seconds;
    }
    for (int i = 0; i < c->count; i++)
        c->relative[i][round] = c->speed[i][round] / c->speed[c->base][round];
    return CLI_SUCCESS;
}

static int measure_all(contest *c) {
    int code = CLI_SUCCESS;
    for (int i = 0; i < c->count && code == CLI_SUCCESS; i++)
        code = warm_up(c, i);
    for (int round = 0; round < c->rounds && code == CLI_SUCCESS; round++)
        code = measure_round(c, round);
    for (int i = 0; i < c->count; i++) {
        int ended = bench_worker_end(&c->workers[i]);
        code = code == CLI_SUCCESS ? ended : code;
    }
    return code;
}

/* ---- printing ------------------------------------------------------------------------------ */

static void print_json(const bench_network *network, double speed, double relative) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", network->model);
    dv_json_integer(&json, "batch", network->batch);
    dv_json_text(&json, "method", network->method);
    dv_json_text(&json, "precision", bench_precisions[network->precision]);
    dv_json_number(&json, "images_per_second", speed);
    dv_json_number(&json, "relative", relative);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

static void print_all(contest *c, int width, int json) {
    if (!json)
        printf("%-16s %6s  %-*s %-4s %10s %9s\n", "model", "batch", width, "method", "", "images/s", "relative");
    for (int i = 0; i < c->count; i++) {
        const bench_network *n = &c->networks[i];
        double speed = bench_median(c->speed[i], c->rounds), relative = bench_median(c->relative[i], c->rounds);
        if (json)
            print_json(n, speed, relative);
        else
            printf("%-16s %6d  %-*s %-4s %10.2f %9.3f\n", n->model, n->batch, width, n->method,
                   bench_precisions[n->precision], speed, relative);
    }
}

/* ---- the command --------------------------------------------------------------------------- */

static void contest_init(contest *c, const bench_network *network, const bench_methods *methods) {
    int none = bench_methods_none(methods);
    c->count = methods->count;
    c->base = none >= 0 ? none : 0;
    for (int i = 0; i < c->count; i++) {
        c->networks[i] = *network;
        c->networks[i].method = methods->at[i];
        c->workers[i] = (bench_worker){.process = 0};
    }
}

int cli_bench_throughput(int argc, char **argv) {
    static contest c = {.rounds = 5};
    bench_network network = {.model = "resnet50", .batch = 32};
    const char *method_text = "none,division";
    int json = 0;
    const dv_option options[] = {
        BENCH_NETWORK_OPTIONS(&network),
        cli_integer_option("batch", NULL, &network.batch),
        {"methods", "LIST", "how values are kept: methods, with commas between them", CLI_TEXT(&method_text)},
        {"rounds", "N", "rounds, over which the median is taken", CLI_INTEGER(&c.rounds, 1, MOST_ROUNDS)},
        {"steps", "N", "steps per round; 0 for about a second of them", CLI_INTEGER(&c.steps, 0, MOST_STEPS)},
        {"json", NULL, "print one JSON object per method", CLI_FLAG(&json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "bench throughput",
        .summary = "Trains a network with each method, each in a process of its own, by turns in rounds, and prints\n"
                   "the median of images per second, and of that relative to none's of the same round (or to the\n"
                   "first method's, where none is not among them).\n",
        .options = options};
    bench_methods methods;
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code == CLI_CONTINUE)
        code = bench_methods_read(&methods, method_text);
    if (code != CLI_CONTINUE)
        return code;
    contest_init(&c, &network, &methods);
    code = measure_all(&c);
    if (code != CLI_SUCCESS)
        return code;
    print_all(&c, bench_methods_width(&methods), json);
    return cli_finish();
}
