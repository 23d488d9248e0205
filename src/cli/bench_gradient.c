/* division bench gradient: how much noise a method puts into the gradient.
 *
 * The measure is what training has anyway: the gradient of a batch differs from that of all images, and its variance
 * over batches is that noise. A method's own is the squared distance of its gradient to the exact one of the same
 * batch, a mean over batches and draws of the codec's random numbers; it adds to the former as a smaller batch would.
 */
#include "bench.h"

#include "cli.h"
#include "train.h"

#include <division/checkpoint.h>
#include <division/data.h>
#include <division/tools/json.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    bench_network network;
    bench_images images;
    const char *memory;
    int batches, draws, fixed, parameters, json;
    int width; /* of a method's column */
} settings;

/* A network with weights, ready to find gradients. */
typedef struct model {
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
} model;

/* What is known of the gradient, parameter after parameter. */
typedef struct gradients {
    size_t count;
    float *exact, *found;      /* [count], of one batch: as it is, and with a method */
    double *variance;          /* [count], of one batch's gradient over all batches */
    double *noise, *deviation; /* [count], a method's: squared distance to exact, and distance of the mean */
} gradients;

/* ---- finding gradients --------------------------------------------------------------------- */

static void model_free(model *m) {
    dv_run_free(m->run);
    dv_plan_free(m->plan);
    dv_graph_free(m->graph);
    *m = (model){0};
}

static dv_status load_weights(const char *path, dv_run *run, dv_error *error) {
    dv_checkpoint *checkpoint;
    dv_checkpoint_choice choice = {0};
    int differences = 0;
    dv_status status = dv_checkpoint_open(path, &checkpoint, error);
    if (status != DV_OK)
        return status;
    status = dv_checkpoint_load(checkpoint, &choice, run, train_tell_difference, &differences, error);
    dv_checkpoint_close(checkpoint);
    return status;
}

static dv_status model_make(model *m, const settings *s, const char *method, dv_error *error) {
    bench_network network = s->network;
    network.method = method;
    dv_status status = bench_plan(&network, &m->graph, &m->plan, error);
    if (status == DV_OK)
        status = dv_run_new(m->plan, 1, &m->run, error);
    if (status == DV_OK && s->images.init != NULL)
        status = load_weights(s->images.init, m->run, error);
    return status;
}

static size_t count_parameters(const dv_run *run) {
    const dv_run_parameter *p;
    size_t count = 0;
    for (size_t i = 0; (p = dv_run_parameter_at(run, i)) != NULL; i++)
        count += p->gradient != NULL ? p->count : 0;
    return count;
}

/* The gradient of a batch -> gradient [count]. */
static dv_status find_gradient(const model *m, dv_loader *loader, size_t batch, uint64_t step, float *gradient,
                               dv_error *error) {
    const dv_run_parameter *p;
    dv_step_result result;
    size_t images, at = 0;
    for (size_t i = 0; (p = dv_run_parameter_at(m->run, i)) != NULL; i++)
        if (p->gradient != NULL)
            memset(p->gradient, 0, p->count * sizeof *p->gradient);
    dv_status status = dv_loader_fill(loader, 0, batch, dv_run_input(m->run), dv_run_labels(m->run), &images, error);
    if (status == DV_OK)
        status = dv_run_train(m->run, &(dv_step){.batch = step}, &result, error);
    for (size_t i = 0; status == DV_OK && (p = dv_run_parameter_at(m->run, i)) != NULL; i++)
        if (p->gradient != NULL) {
            memcpy(gradient + at, p->gradient, p->count * sizeof *p->gradient);
            at += p->count;
        }
    return status;
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* The variance of the exact gradient over batches. */
static dv_status measure_batches(gradients *g, const model *exact, dv_loader *loader, int batches, dv_error *error) {
    double *sum = g->deviation, *squares = g->noise; /* for now */
    for (int batch = 0; batch < batches; batch++) {
        dv_status status = find_gradient(exact, loader, (size_t)batch, 0, g->exact, error);
        if (status != DV_OK)
            return status;
        for (size_t i = 0; i < g->count; i++) {
            double value = (double)g->exact[i];
            sum[i] += value;
            squares[i] += value * value;
        }
    }
    for (size_t i = 0; i < g->count; i++)
        g->variance[i] = (squares[i] - sum[i] * sum[i] / batches) / (batches - 1);
    return DV_OK;
}

/* A method's gradients next to the exact ones, each of another batch (or all of the first) and with other random
 * numbers. */
static dv_status measure_draws(gradients *g, const model *exact, const model *m, dv_loader *loader, const settings *s,
                               dv_error *error) {
    size_t batches = s->fixed ? 1 : dv_loader_batches(loader);
    int draws = s->draws;
    memset(g->noise, 0, g->count * sizeof *g->noise);
    memset(g->deviation, 0, g->count * sizeof *g->deviation);
    for (int draw = 0; draw < draws; draw++) {
        dv_status status = find_gradient(exact, loader, (size_t)draw % batches, 0, g->exact, error);
        if (status == DV_OK)
            status = find_gradient(m, loader, (size_t)draw % batches, (uint64_t)draw, g->found, error);
        if (status != DV_OK)
            return status;
        for (size_t i = 0; i < g->count; i++) {
            double distance = (double)g->found[i] - (double)g->exact[i];
            g->noise[i] += distance * distance / draws;
            g->deviation[i] += distance / draws;
        }
    }
    return DV_OK;
}

/* Sums over some parameters. */
typedef struct measured {
    double batch, method; /* variances */
    double bias;          /* squared mean of the distances to the exact gradient */
    size_t activations;   /* bytes that the method keeps, of all layers */
} measured;

static measured sum_up(const gradients *g, size_t first, size_t count, const dv_plan *plan) {
    measured sum = {.activations = dv_plan_totals(plan).activations};
    for (size_t i = first; i < first + count; i++) {
        sum.batch += g->variance[i];
        sum.method += g->noise[i];
        sum.bias += g->deviation[i] * g->deviation[i];
    }
    return sum;
}

/* ---- printing ------------------------------------------------------------------------------ */

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

/* The squared norm of the mean error, less what is left in it of the noise by chance: without bias its mean is zero. */
static double squared_bias(const measured *of, int draws) {
    return of->bias - (of->method - of->bias) / (draws - 1);
}

static void print_row(const settings *s, const char *method, const char *parameter, measured of) {
    double noise = ratio(of.method, of.batch), mean = ratio(of.bias * s->draws, of.method);
    double bias = ratio(squared_bias(&of, s->draws), of.batch);
    if (!s->json) {
        printf("%-*s %-28s %9.4f %9.4f %10.3f %9.2f %9.4f\n", s->width, method, parameter ? parameter : "all",
               sqrt(of.batch), sqrt(of.method), noise, mean, bias);
        return;
    }
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "model", s->network.model);
    dv_json_text(&json, "data", s->images.data);
    dv_json_integer(&json, "batch", s->network.batch);
    dv_json_text(&json, "method", method);
    if (parameter != NULL)
        dv_json_text(&json, "parameter", parameter);
    else
        dv_json_null(&json, "parameter");
    dv_json_number(&json, "batch_noise", sqrt(of.batch));
    dv_json_number(&json, "method_noise", sqrt(of.method));
    dv_json_number(&json, "variance_ratio", noise);
    dv_json_number(&json, "mean_ratio", mean);
    dv_json_number(&json, "bias_ratio", bias);
    dv_json_unsigned(&json, "activation_bytes", of.activations);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

static void print_method(const settings *s, const gradients *g, const model *m, const char *method) {
    const dv_run_parameter *p;
    size_t first = 0;
    print_row(s, method, NULL, sum_up(g, 0, g->count, m->plan));
    for (size_t i = 0; s->parameters && (p = dv_run_parameter_at(m->run, i)) != NULL; i++)
        if (p->gradient != NULL) {
            print_row(s, method, p->name, sum_up(g, first, p->count, m->plan));
            first += p->count;
        }
    fflush(stdout);
}

/* ---- the command --------------------------------------------------------------------------- */

static dv_status gradients_make(gradients *g, size_t count, dv_error *error) {
    g->count = count;
    g->exact = calloc(count + 1, sizeof *g->exact);
    g->found = calloc(count + 1, sizeof *g->found);
    g->variance = calloc(count + 1, sizeof *g->variance);
    g->noise = calloc(count + 1, sizeof *g->noise);
    g->deviation = calloc(count + 1, sizeof *g->deviation);
    if (g->exact && g->found && g->variance && g->noise && g->deviation)
        return DV_OK;
    return cli_error(error, DV_ERROR_MEMORY, "no memory for the gradients of %zu parameters: free some", count);
}

static void gradients_free(gradients *g) {
    free(g->exact);
    free(g->found);
    free(g->variance);
    free(g->noise);
    free(g->deviation);
}

static dv_status measure_method(const settings *s, const char *method, dv_loader *loader, gradients *g,
                                const model *exact, dv_error *error) {
    model m = {0};
    dv_status status = model_make(&m, s, method, error);
    if (status == DV_OK)
        status = measure_draws(g, exact, &m, loader, s, error);
    if (status == DV_OK)
        print_method(s, g, &m, method);
    model_free(&m);
    return status;
}

/* Plans every method, so that a wrong one is told before the first is measured. */
static dv_status check_methods(const settings *s, const bench_methods *methods, dv_error *error) {
    dv_status status = DV_OK;
    for (int i = 0; i < methods->count && status == DV_OK; i++) {
        bench_network network = s->network;
        model m = {0};
        network.method = methods->at[i];
        status = bench_plan(&network, &m.graph, &m.plan, error);
        if (status == DV_OK)
            model_free(&m);
    }
    return status;
}

static dv_status measure(const settings *s, const bench_methods *methods, dv_loader *loader, gradients *g, model *exact,
                         dv_error *error) {
    dv_status status = check_methods(s, methods, error);
    if (status == DV_OK)
        status = model_make(exact, s, "none", error);
    if (status == DV_OK)
        status = gradients_make(g, count_parameters(exact->run), error);
    if (status == DV_OK)
        status = measure_batches(g, exact, loader, s->batches, error);
    if (status == DV_OK && !s->json)
        printf("%-*s %-28s %9s %9s %10s %9s %9s\n", s->width, "method", "parameter", "batch", "method", "variance",
               "mean", "bias");
    for (int i = 0; i < methods->count && status == DV_OK; i++)
        status = measure_method(s, methods->at[i], loader, g, exact, error);
    return status;
}

/* As many classes and as large as the data's, unless the call says otherwise. */
static dv_status open_data(settings *s, dv_dataset **data, dv_loader **loader, dv_error *error) {
    dv_status status = dv_dataset_open(s->images.data, data, error);
    if (status != DV_OK)
        return status;
    dv_dataset_shape shape = dv_dataset_describe(*data);
    if (s->network.classes == 0)
        s->network.classes = (int)shape.classes;
    if (s->network.side == 0)
        s->network.side = (int)shape.side;
    dv_loader_options options = {.split = DV_TRAIN,
                                 .type = s->network.precision ? DV_BF16 : DV_F32,
                                 .batch = (size_t)s->network.batch,
                                 .seed = 1,
                                 .shuffle = 1,
                                 .drop_last = 1,
                                 .side = (size_t)s->network.side};
    status = dv_image_normalisation_parse(s->images.normalise, &options.normalisation, error);
    if (status == DV_OK)
        status = dv_loader_new(*data, &options, loader, error);
    if (status == DV_OK && dv_loader_batches(*loader) < (size_t)s->batches)
        status = cli_error(error, DV_ERROR_OPTION, "--batches %d: the data has %zu of %d images: give fewer",
                           s->batches, dv_loader_batches(*loader), s->network.batch);
    return status;
}

int cli_bench_gradient(int argc, char **argv) {
    settings s = {.network = {.model = "resnet20", .batch = 128, .keep_gradients = 1},
                  .images = {.data = "synthetic", .normalise = "usual"},
                  .batches = 24,
                  .draws = 24};
    const char *method_text = "division,division:dither=subtractive,division:dither=subtractive,recompute=norms";
    const dv_option options[] = {
        BENCH_NETWORK_OPTIONS(&s.network),
        cli_integer_option("batch", NULL, &s.network.batch),
        {"methods", "LIST", "how values are kept: methods, with commas between them", CLI_TEXT(&method_text)},
        BENCH_BUDGETS_OPTION(&s.memory),
        {"data", "DATA", "the images: see 'division help train'", CLI_TEXT(&s.images.data)},
        {"normalise", "HOW", "means and deviations of the images, M+M+M/D+D+D", CLI_TEXT(&s.images.normalise)},
        {"init", "FILE", "weights; if not given, those that training begins with", CLI_TEXT(&s.images.init)},
        {"batches", "N", "batches whose exact gradients are compared", CLI_INTEGER(&s.batches, 2, 10000)},
        {"draws", "N", "gradients with each method, each of another batch", CLI_INTEGER(&s.draws, 2, 10000)},
        {"fixed", NULL, "take every draw of the first batch", CLI_FLAG(&s.fixed)},
        {"parameters", NULL, "print each parameter as well", CLI_FLAG(&s.parameters)},
        {"json", NULL, "print one JSON object per line", CLI_FLAG(&s.json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "bench gradient",
        .summary =
            "Measures the noise that methods put into the gradient, next to the noise that it has anyway because a\n"
            "batch is not all images: both as the root of their variance, and the variance of the former by that\n"
            "of the latter. 'mean' tells of bias: what is left of the noise in the mean of the draws, by what\n"
            "should be left. It is about 1 without bias, and grows with --draws where there is some. 'bias' is the\n"
            "squared norm of the mean of the draws less what chance leaves in it, by the variance of batches:\n"
            "about 0 without bias, a little below as often as above. Draws go through the batches by turns; with\n"
            "--fixed all are of the first batch, and a bias that differs from batch to batch does not average out.\n",
        .options = options};
    static bench_methods methods;
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code == CLI_CONTINUE)
        code = bench_methods_read(&methods, method_text);
    bench_use_threads(&s.network);
    if (code == CLI_CONTINUE)
        code = bench_methods_within(&methods, s.memory, &s.network, &s.images);
    if (code != CLI_CONTINUE)
        return code;
    dv_dataset *data = NULL;
    dv_loader *loader = NULL;
    gradients g = {0};
    model exact = {0};
    dv_error error;
    s.width = bench_methods_width(&methods);
    dv_status status = open_data(&s, &data, &loader, &error);
    if (status == DV_OK)
        status = measure(&s, &methods, loader, &g, &exact, &error);
    code = status == DV_OK ? cli_finish() : cli_report(&error);
    model_free(&exact);
    gradients_free(&g);
    dv_loader_free(loader);
    dv_dataset_close(data);
    return code;
}
