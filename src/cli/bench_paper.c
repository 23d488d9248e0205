/* division bench paper and its parts: the evaluation of the paper, every method on the same graph, kernels and planner.
 *
 * What is measured is a table, each row with the preset that it belongs to: a new preset is some rows, and a line in
 * the table of bench.c. Everything goes to one folder, from which a call that was killed goes on, and ends with a page.
 */
#include "bench_paper.h"

#include "cli.h"

#include <division/tools/option.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVERY "all,division:dither=subtractive,division:dither=subtractive,recompute=norms"
#define SUBTRACTIVE "division:block=8,bits=2,dither=subtractive"
#define RECOMPUTE SUBTRACTIVE ",recompute=norms"

#define MEMORY "paper-memory", &bench_memory_kind
#define SPEED "paper-throughput", &bench_throughput_kind
#define NOISE "paper-noise", &paper_gradient_kind
#define ACCURACY(recipe, method, seeds, run, full) \
    { "paper-accuracy", &paper_training_kind, recipe, NULL, method, "accuracy", run, 0, seeds, 0, full }
#define WEIGHTS(recipe, run) \
    { "paper-noise", &paper_training_kind, recipe, NULL, "none", "weights", run, 0, 1, 3, 0 }

static const paper_row rows[] = {
    {MEMORY, "resnet50", "64,128,256,512", EVERY, NULL, NULL, 0, 1, 0, 0},
    {MEMORY, "wide_resnet50_2", "64,128,256,512", EVERY, NULL, NULL, 0, 1, 0, 0},
    {MEMORY, "resnet164_published", "64", EVERY, NULL, NULL, 0, 1, 0, 0},
    {SPEED, "resnet50", "32", EVERY, NULL, NULL, 0, 1, 0, 0},
    {SPEED, "resnet50", "32", EVERY, NULL, NULL, 1, 1, 0, 0},
    {SPEED, "resnet18_cifar", "256", EVERY, NULL, NULL, 0, 1, 0, 0},
    {SPEED, "resnet18_cifar", "256", EVERY, NULL, NULL, 1, 1, 0, 0},
    WEIGHTS("resnet20_cifar10_short", "resnet20-none"),
    {NOISE, "resnet20", "128", EVERY, "weights", "resnet20-none", 0, 1, 0, 0},
    WEIGHTS("resnet18_cifar10_short", "resnet18-none"),
    {NOISE, "resnet18_cifar", "128", EVERY, "weights", "resnet18-none", 0, 1, 0, 0},
    ACCURACY("resnet20_cifar10_short", "none", 3, "resnet20-none", -1),
    ACCURACY("resnet20_cifar10_short", "division:block=8,bits=2,dither=stochastic", 3, "resnet20-stochastic", -1),
    ACCURACY("resnet20_cifar10_short", SUBTRACTIVE, 3, "resnet20-subtractive", -1),
    ACCURACY("resnet20_cifar10_short", RECOMPUTE, 3, "resnet20-recompute", -1),
    ACCURACY("resnet20_cifar10_short", "lean", 3, "resnet20-lean", -1),
    ACCURACY("resnet20_cifar10_short", "actnn", 1, "resnet20-actnn", -1),
    ACCURACY("resnet20_cifar10_short", "acgc", 1, "resnet20-acgc", -1),
    ACCURACY("resnet20_cifar10_short", "bf16", 1, "resnet20-bf16", -1),
    ACCURACY("resnet29_cifar10_short", "none", 1, "resnet29-none", -1),
    ACCURACY("resnet29_cifar10_short", "blpa", 1, "resnet29-blpa", -1),
    ACCURACY("resnet18_cifar10_short", "none", 2, "resnet18-none", -1),
    ACCURACY("resnet18_cifar10_short", RECOMPUTE, 2, "resnet18-recompute", -1),
    ACCURACY("resnet18_cifar10_short", "lean", 2, "resnet18-lean", -1),
    ACCURACY("resnet18_cifar10", "none", 1, "resnet18-none", 1),
    ACCURACY("resnet18_cifar10", "division", 1, "resnet18-division", 1),
    ACCURACY("resnet18_cifar10", "actnn", 1, "resnet18-actnn", 1),
    ACCURACY("resnet18_cifar10", "acgc", 1, "resnet18-acgc", 1),
    ACCURACY("resnet164_cifar10", "none", 1, "resnet164-cifar10-none", 1),
    ACCURACY("resnet164_cifar10", "division", 1, "resnet164-cifar10-division", 1),
    ACCURACY("resnet164_cifar10", "blpa", 1, "resnet164-cifar10-blpa", 1),
    ACCURACY("resnet164_cifar100", "none", 1, "resnet164-cifar100-none", 1),
    ACCURACY("resnet164_cifar100", "division", 1, "resnet164-cifar100-division", 1),
    ACCURACY("resnet164_cifar100", "blpa", 1, "resnet164-cifar100-blpa", 1),
    ACCURACY("resnet164_cifar100", "acgc", 1, "resnet164-cifar100-acgc", 1),
    ACCURACY("densenet121_cifar100", "none", 1, "densenet121-none", 1),
    ACCURACY("densenet121_cifar100", "division", 1, "densenet121-division", 1),
    ACCURACY("densenet121_cifar100", "actnn", 1, "densenet121-actnn", 1),
    ACCURACY("resnet50_imagenet", "none", 1, "resnet50-none", 1),
    ACCURACY("resnet50_imagenet", "division", 1, "resnet50-division", 1),
    ACCURACY("resnet50_imagenet", "actnn", 1, "resnet50-actnn", 1),
    ACCURACY("resnet50_imagenet", "acgc", 1, "resnet50-acgc", 1),
    ACCURACY("densenet161_imagenet", "none", 1, "densenet161-none", 1),
    ACCURACY("densenet161_imagenet", "division", 1, "densenet161-division", 1),
    ACCURACY("densenet161_imagenet", "actnn", 1, "densenet161-actnn", 1),
};

enum { ROWS = sizeof rows / sizeof *rows, MEMORY_STEPS = 3, ONE_STEP_FROM = 128, MOST_ROUNDS = 101 };

/* Where the lines of a kind go. */
static struct {
    const bench_kind *kind;
    const char *file;
    bench_output output;
} files[] = {{.kind = &bench_memory_kind, .file = "memory.jsonl"},
             {.kind = &bench_throughput_kind, .file = "throughput.jsonl"},
             {.kind = &paper_gradient_kind, .file = "gradient.jsonl"},
             {.kind = &paper_training_kind, .file = NULL}};

enum { FILES = sizeof files / sizeof *files };

static const paper_scale usual, small = {.batch = "4",
                                         .side = 64,
                                         .training_side = 32,
                                         .data = "synthetic:side=32,train=64,test=32",
                                         .draws = "8",
                                         .epochs = 1,
                                         .steps = 1,
                                         .rounds = 1};

paper_settings paper = {.out = "paper", .data = "data", .recipes = "recipes", .rounds = 5, .scale = &usual};

/* ---- files --------------------------------------------------------------------------------- */

static int make_folder(const char *path) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return CLI_SUCCESS;
    return cli_fail("could not make the folder %s: %s: give another one with --out", path, strerror(errno));
}

static void file_path(int i, char path[PAPER_PATH_BYTES]) {
    snprintf(path, PAPER_PATH_BYTES, "%.400s/%s", paper.out, files[i].file);
}

/* An estimate makes no folder that was not there. */
static int open_files(void) {
    static const char *const folders[] = {"", "/accuracy", "/weights"};
    char path[PAPER_PATH_BYTES];
    int code = CLI_SUCCESS, anything = !paper.estimate || access(paper.out, F_OK) == 0;
    for (size_t i = 0; anything && i < sizeof folders / sizeof *folders && code == CLI_SUCCESS; i++) {
        snprintf(path, sizeof path, "%.400s%s", paper.out, folders[i]);
        code = make_folder(path);
    }
    for (int i = 0; i < FILES && code == CLI_SUCCESS; i++) {
        file_path(i, path);
        code = bench_output_open(&files[i].output, anything && files[i].file != NULL ? path : NULL);
    }
    return code;
}

static void close_files(void) {
    for (int i = 0; i < FILES; i++)
        bench_output_close(&files[i].output);
}

static bench_output *output_of(const bench_kind *kind) {
    int i = 0;
    while (files[i].kind != kind)
        i++;
    return &files[i].output;
}

/* ---- jobs ---------------------------------------------------------------------------------- */

static int belongs(const paper_row *row, const char *preset) {
    int wanted = strcmp(preset, "paper") == 0 || strcmp(preset, row->preset) == 0;
    return wanted && row->full != (paper.full ? -1 : 1);
}

/* What a job of a row has, but for its batch and its method. */
static bench_job job_of(const paper_row *row) {
    const paper_scale *scale = paper.scale;
    bench_job job = {.kind = row->kind, .output = output_of(row->kind), .what = row};
    job.network = (bench_network){.model = row->name, .precision = row->precision, .threads = paper.threads};
    job.network.side = row->folder == NULL ? scale->side : scale->training_side;
    job.steps = scale->steps;
    job.rounds = scale->rounds > 0 ? scale->rounds : paper.rounds;
    return job;
}

/* Steps of memory: a batch that takes minutes makes one. */
static int steps_of(const bench_job *job) {
    if (job->kind != &bench_memory_kind || job->steps > 0)
        return job->steps;
    return job->network.batch >= ONE_STEP_FROM ? 1 : MEMORY_STEPS;
}

static int add_training(bench_session *session, const paper_row *row, const bench_methods *methods) {
    bench_job job = job_of(row);
    int code = paper_read_recipe(row, &job);
    job.network.method = job.base = methods->at[0];
    for (job.number = 1; job.number <= row->seeds && code == CLI_SUCCESS; job.number++)
        code = bench_session_add(session, &job) == CLI_CONTINUE ? CLI_SUCCESS : CLI_WRONG_CALL;
    return code;
}

static int add_row(bench_session *session, const paper_row *row, bench_methods *methods) {
    bench_batches batches;
    int first = session->count, code = bench_methods_read(methods, row->methods);
    if (code == CLI_CONTINUE && row->batches == NULL)
        return add_training(session, row, methods);
    bench_job job = job_of(row);
    const char *small_batch = row->kind == &paper_gradient_kind ? paper.scale->draws : paper.scale->batch;
    if (code == CLI_CONTINUE)
        code = bench_batches_read(&batches, small_batch != NULL ? small_batch : row->batches);
    if (code == CLI_CONTINUE)
        code = bench_session_grid(session, &job, &batches, methods);
    for (int i = first; i < session->count; i++)
        session->jobs[i].steps = steps_of(&session->jobs[i]);
    return code == CLI_CONTINUE ? CLI_SUCCESS : code;
}

static int add_jobs(bench_session *session, const char *preset) {
    static bench_methods methods[ROWS]; /* jobs point into them */
    int code = CLI_SUCCESS;
    for (int i = 0; i < ROWS && code == CLI_SUCCESS; i++)
        if (belongs(&rows[i], preset))
            code = add_row(session, &rows[i], &methods[i]);
    return code;
}

/* ---- the page ------------------------------------------------------------------------------ */

/* Of everything that there is in the folder by now. */
static int make_report(const bench_session *session) {
    static char paths[CLI_MAX_OPERANDS][PAPER_PATH_BYTES], page[PAPER_PATH_BYTES], figures[PAPER_PATH_BYTES];
    char *arguments[CLI_MAX_OPERANDS + 4] = {"report", page, figures};
    int count = 0;
    snprintf(page, sizeof page, "-o=%.400s/report.html", paper.out);
    snprintf(figures, sizeof figures, "--figures=%.400s/figures", paper.out);
    for (int i = 0; i < FILES; i++)
        if (files[i].output.bytes > 0 && files[i].file != NULL)
            file_path(i, paths[count++]);
    for (int i = 0; i < session->count && count < CLI_MAX_OPERANDS; i++) {
        const bench_job *job = &session->jobs[i];
        const paper_row *row = job->what;
        if (job->kind == &paper_training_kind && strcmp(row->folder, "accuracy") == 0)
            paper_run_path(row, job->number, paths[count++]);
    }
    for (int i = 0; i < count; i++)
        arguments[3 + i] = paths[i];
    return cli_report_command(3 + count, arguments);
}

/* ---- the command --------------------------------------------------------------------------- */

/* Hours and minutes, or minutes and seconds, for people. */
static void tell_estimate(const bench_session *session, const char *preset, double seconds) {
    int known = 0;
    for (int i = 0; i < session->count; i++)
        known += session->jobs[i].kind->known(session, &session->jobs[i]);
    unsigned minutes = (unsigned)(seconds / 60 + 0.5);
    fprintf(stderr, "%s: %d of %d are in %s already; the rest takes about %u:%02u hours on this machine\n", preset,
            known, session->count, paper.out, minutes / 60, minutes % 60);
}

static int evaluate(bench_session *session, const char *preset) {
    double seconds;
    int code = add_jobs(session, preset);
    if (code == CLI_SUCCESS)
        code = bench_session_estimate(session, &seconds);
    if (code != CLI_SUCCESS)
        return code;
    tell_estimate(session, preset, seconds);
    if (paper.estimate)
        return cli_finish();
    code = bench_session_run(session);
    if (code == CLI_SUCCESS)
        code = make_report(session);
    if (code == CLI_SUCCESS)
        fprintf(stderr, "%s: the page is %s/report.html\n", preset, paper.out);
    return code;
}

int cli_bench_paper(int argc, char **argv) {
    static bench_session session;
    char command[PAPER_PATH_BYTES];
    bench_session_begin(&session);
    const dv_option options[] = {
        {"out", "FOLDER", "lines, trainings, figures and the page go here; what is there is not measured again",
         CLI_TEXT(&paper.out)},
        {"data", "FOLDER", "has cifar10, and for --full cifar100 and imagenet", CLI_TEXT(&paper.data)},
        {"recipes", "FOLDER", "has the recipes of the trainings", CLI_TEXT(&paper.recipes)},
        {"full", NULL, "trainings of the published length, not of two cores' size", CLI_FLAG(&paper.full)},
        {"precision", "f32|bf16", "of trainings; if not given, the recipes'", CLI_TEXT(&paper.precision)},
        {"rounds", "N", "of throughput, over which the median is taken", CLI_INTEGER(&paper.rounds, 1, MOST_ROUNDS)},
        BENCH_LIMIT_OPTION(&session),
        cli_integer_option("threads", NULL, &paper.threads),
        {"estimate", NULL, "say how long it takes, and end", CLI_FLAG(&paper.estimate)},
        {"trial", NULL, "tiny batches, images and trainings: a few minutes that show that everything works",
         CLI_FLAG(&paper.trial)},
        {"json", NULL, "print one JSON object per line", CLI_FLAG(&session.json)},
        CLI_OPTIONS_END,
    };
    snprintf(command, sizeof command, "bench %s", argv[0]);
    const cli_usage usage = {
        .command = command,
        .summary =
            "Repeats the paper's evaluation, or one part of it, with every method, and makes a page of it.\n"
            "Says first how long it takes. Stopped or killed, it goes on where it was when it is called again.\n",
        .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE)
        return code;
    paper.scale = paper.trial ? &small : &usual;
    bench_use_threads(&(bench_network){.threads = paper.threads});
    code = open_files();
    if (code == CLI_SUCCESS)
        code = evaluate(&session, argv[0]);
    close_files();
    return code;
}
