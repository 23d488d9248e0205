/* Random graphs (random_graph.h), each trained for a few steps by every method: all losses are equal, gradients are
 * those of finite differences, memory that is shared changes no bit, nor do the steps before, and packed values leave
 * the gradient right on average. With small slices too, in f32 and bf16.
 *
 *     DV_RANDOM_GRAPHS=10000 build/release/tests/test_random_graphs       more of them
 *     DV_RANDOM_SEED=17 DV_RANDOM_GRAPHS=1 ...                            one of them again, with its layers */
#include "graph/plan.h"
#include "maps.h"
#include "random_graph.h"

#include <omp.h>

enum {
    DRAWS = 100,
    DIRECTIONS = 3,
    ENOUGH_STEPS = 7,
    FREEZE_BYTES = 4096,
    BATCH_NUMBER = 7,
    MOST_FAULTS = 20,
    MOST_ARRAYS = 128,
    MOST_ROUNDINGS = 100
};

/* Methods that lose nothing: their gradients are those of `none`, which is the first, bit for bit. */
static const char *const exact_methods[] = {"none", "checkpoint", "checkpoint:segments=4", "swap:tmpfs=allowed"};
enum { EXACT_METHODS = sizeof exact_methods / sizeof *exact_methods };

/* Methods that pack, with 8 bits. */
static const char *const packed_methods[] = {
    "division:bits=8",
    "division:bits=8,recompute=norms",
    "division:bits=8,block=3,spill=on",
    "division:bits=8,block=2,recompute=norms,dither=subtractive",
    "lean:levels=255,joined=255,mask=off",
};
enum { PACKED_METHODS = sizeof packed_methods / sizeof *packed_methods };

/* Methods with an error that is no noise, or that learn: how far from exact a gradient may be, of its norm. */
static const struct {
    const char *text;
    bool learns; /* a step depends on those before */
    double distance;
} other_methods[] = {
    {"bf16", false, 0.05},
    {"blpa:bits=8", false, 0.5},
    {"blpa", false, INFINITY},
    {"lean:levels=255,joined=255,sample=0", false, 0.5},
    {"lean", false, INFINITY},
    {"lean:chain=2,block=2,levels=7,sample=3", false, INFINITY},
    {"actnn:level=L0", false, 0},
    {"actnn:level=L1", false, INFINITY},
    {"actnn:level=L2", false, INFINITY},
    {"actnn", true, INFINITY},
    {"actnn:bits=8", true, 0.2},
    {"actnn:level=L4", true, INFINITY},
    {"acgc", true, 0.3},
    {"acgc:bits=4,eps_bits=4", true, INFINITY},
};
enum { OTHER_METHODS = sizeof other_methods / sizeof *other_methods };

/* One of all of them, by turns. */
static const char *method_at(uint64_t turn) {
    size_t i = (size_t)(turn % (EXACT_METHODS + PACKED_METHODS + OTHER_METHODS));
    if (i < EXACT_METHODS)
        return exact_methods[i];
    i -= EXACT_METHODS;
    return i < PACKED_METHODS ? packed_methods[i] : other_methods[i - PACKED_METHODS].text;
}

#define RATE 0.01 /* of learning */

static const dv_guard_options unguarded = {0};
static const dv_guard_options apart = {.zones = true, .apart = true, .fill = true, .pattern = 0xFF};

/* ---- faults ---------------------------------------------------------------------------------- */

/* One graph, and what is known of it. */
typedef struct subject {
    uint64_t seed;
    dv_type type;
    dv_graph *graph;
    char freeze[FREEZE_BYTES]; /* what is not trained, as dv_plan_options has it */
    size_t count;              /* of the trained parameters' elements */
    double loss;               /* of `none` */
    float *exact;              /* [count] gradients of `none` */
    bool flat;                 /* some channels have next to no variance: see has_flat_channels */
} subject;

static size_t faults;

/* What all graphs together showed. */
static struct {
    size_t maps;                 /* graphs whose logits are maps */
    size_t slopes, inconclusive; /* slopes that were tried, and those about which nothing could be said */
    double z, distance;          /* of packed gradients, at most */
} most;

static void describe(const subject *s) {
    for (size_t i = 0; i < s->graph->layer_count; i++) {
        const dv_layer *layer = &s->graph->layers[i].layer;
        print_message("    %-28s %-24s %s\n", layer->name, layer->kind->name, dv_shape(&layer->output).text);
    }
    if (*s->freeze)
        print_message("    frozen: %s\n", s->freeze);
}

/* Tells of a fault and goes on: one that many graphs have is easier to find than one of one graph. */
#define complain(s, ...)                                                                            \
    do {                                                                                            \
        print_message("seed %llu, %s: ", (unsigned long long)(s)->seed, dv_type_name((s)->type));   \
        print_message(__VA_ARGS__);                                                                 \
        print_message("\n  repeat it: DV_RANDOM_SEED=%llu DV_RANDOM_GRAPHS=1 test_random_graphs\n", \
                      (unsigned long long)(s)->seed);                                               \
        describe(s);                                                                                \
        if (++faults >= MOST_FAULTS)                                                                \
            fail_msg("%d faults: enough", MOST_FAULTS);                                             \
    } while (0)

/* ---- runs ------------------------------------------------------------------------------------ */

typedef struct running {
    dv_plan *plan;
    dv_run *run;
} running;

/* Whether array `k` of a run is of a layer that is frozen. */
static bool is_of_frozen(running r, size_t k) {
    size_t i = 0;
    for (const dv_graph_layer *node = r.plan->graph->layers;; node++, i++) {
        size_t arrays = node->layer.parameter_count + node->layer.buffer_count;
        if (k < arrays)
            return dv_plan_is_frozen(r.plan, (int)i);
        k -= arrays;
    }
}

static bool is_statistic(const dv_run_parameter *p) {
    return strstr(p->name, ".running_") != NULL;
}

/* Parameters begin as they do, but with something added: batch norms would all be alike. So do the running statistics
 * of those that are frozen, which use them. */
static void vary_parameters(const subject *s, running r) {
    const dv_run_parameter *p;
    dice d = dice_of(s->seed, 2), of_statistics = dice_of(s->seed, 8);
    for (size_t k = 0; (p = dv_run_parameter_at(r.run, k)); k++)
        for (size_t i = 0; i < p->count; i++)
            if (!is_statistic(p))
                p->data[i] += 0.2f * roll_number(&d);
            else if (is_of_frozen(r, k))
                p->data[i] += 0.2f * roll_number(&of_statistics);
}

static running start_with(const subject *s, const dv_plan_options *options, const dv_guard_options *guard) {
    running r;
    assert_ok(dv_plan_new_guarded(s->graph, options, guard, &r.plan, &error));
    assert_ok(dv_run_new(r.plan, s->seed, &r.run, &error));
    vary_parameters(s, r);
    return r;
}

static running start(const subject *s, const char *method, const dv_guard_options *guard) {
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    options.freeze = s->freeze;
    return start_with(s, &options, guard);
}

static void stop(running r) {
    dv_run_free(r.run);
    dv_plan_free(r.plan);
}

/* Images that bf16 can hold, so that both types see the same. */
static void feed(const subject *s, running r, uint64_t batch) {
    const dv_map *map = dv_run_input_map(r.run);
    const dv_map *logits = &s->graph->values[s->graph->logits].map;
    dice d = dice_of(s->seed, 1000 + batch);
    for (size_t i = 0; i < dv_map_elements(map); i++)
        store_element(map->type, dv_run_input(r.run), i, dv_bf16_to_f32(dv_bf16_nearest(2 * roll_number(&d))));
    for (size_t i = 0; i < dv_map_elements(logits) / logits->channels; i++)
        dv_run_labels(r.run)[i] =
            logits->rank > 0 && chance(&d, 20) ? DV_NO_LABEL : (int32_t)roll(&d, 0, logits->channels - 1);
}

/* A step on images `images` as the batch of number `batch`; gradients are of this step alone. */
static double step_on(const subject *s, running r, uint64_t images, uint64_t batch) {
    const dv_run_parameter *p;
    dv_step_result result = {0};
    feed(s, r, images);
    for (size_t k = 0; (p = dv_run_parameter_at(r.run, k)); k++)
        if (p->gradient)
            memset(p->gradient, 0, p->count * sizeof(float));
    dv_error error = {0};
    if (dv_run_train(r.run, &(dv_step){.batch = batch, .rate = RATE, .update = batch}, &result, &error) != DV_OK)
        complain(s, "%s: a step fails: %s", r.plan->options.method, error.text);
    return result.loss;
}

static double step(const subject *s, running r) {
    return step_on(s, r, BATCH_NUMBER, BATCH_NUMBER);
}

/* Copies all gradients, one behind the other, and counts them. */
static size_t gradients(dv_run *run, float *to) {
    const dv_run_parameter *p;
    size_t count = 0;
    for (size_t k = 0; (p = dv_run_parameter_at(run, k)); k++) {
        if (p->gradient && to)
            memcpy(to + count, p->gradient, p->count * sizeof(float));
        count += p->gradient ? p->count : 0;
    }
    return count;
}

static float *gradients_of(const subject *s, running r) {
    float *copy = malloc((s->count + 1) * sizeof *copy);
    assert_non_null(copy);
    gradients(r.run, copy);
    return copy;
}

/* Whether a batch norm has had next to no variance in the first step of a run: gradients before it are hundreds of
 * times those behind it, and what is left of their sums in bf16 is rounding. */
static bool has_flat_channels(running r) {
    const dv_run_parameter *p;
    const float momentum = 0.1f, least = 1e-3f;
    for (size_t k = 0; (p = dv_run_parameter_at(r.run, k)); k++)
        for (size_t i = 0; strstr(p->name, "running_var") && !is_of_frozen(r, k) && i < p->count; i++)
            if (p->data[i] < 1 - momentum + momentum * least)
                return true;
    return false;
}

/* The first parameter or running statistic in which two runs differ, or NULL. */
static const char *difference(running a, running b) {
    const dv_run_parameter *p, *q;
    for (size_t k = 0; (p = dv_run_parameter_at(a.run, k)) && (q = dv_run_parameter_at(b.run, k)); k++)
        if (p->gradient ? memcmp(p->gradient, q->gradient, p->count * sizeof(float)) != 0
                        : memcmp(p->data, q->data, p->count * sizeof(float)) != 0)
            return p->name;
    return NULL;
}

/* ---- the same bits --------------------------------------------------------------------------- */

/* Pieces that share nothing, and are NaN until they are written. */
static void check_apart(const subject *s, running fresh, double loss) {
    running other = start(s, fresh.plan->options.method, &apart);
    double other_loss = step(s, other);
    const char *where = difference(fresh, other);
    if (where || loss != other_loss)
        complain(s, "%s: loss %.17g, and %.17g where pieces share nothing; another %s", fresh.plan->options.method,
                 loss, other_loss, where ? where : "loss");
    stop(other);
}

/* Statistics have moved by the steps before: only gradients are compared. */
static void check_later_step(const subject *s, running fresh, double loss) {
    running other = start(s, fresh.plan->options.method, &unguarded);
    step_on(s, other, 1, 1);
    step_on(s, other, 2, 2);
    double other_loss = step(s, other);
    float *a = gradients_of(s, fresh), *b = gradients_of(s, other);
    if (loss != other_loss || memcmp(a, b, s->count * sizeof *a) != 0)
        complain(s, "%s: loss %.17g in a fresh run, %.17g after other steps, or other gradients",
                 fresh.plan->options.method, loss, other_loss);
    free(a);
    free(b);
    stop(other);
}

/* With running statistics: in a run for training and in one for inference. */
static void check_inference(const subject *s, running trained) {
    dv_plan_options options = {.method = "none", .inference = 1};
    dv_step_result a = {0}, b = {0};
    running other;
    assert_ok(dv_plan_new_guarded(s->graph, &options, &apart, &other.plan, &error));
    assert_ok(dv_run_new(other.plan, s->seed, &other.run, &error));
    const dv_run_parameter *p, *q;
    for (size_t k = 0; (p = dv_run_parameter_at(trained.run, k)) && (q = dv_run_parameter_at(other.run, k)); k++)
        memcpy(q->data, p->data, p->count * sizeof(float));
    feed(s, trained, 3);
    feed(s, other, 3);
    dv_error error = {0};
    if (dv_run_evaluate(trained.run, &a, &error) != DV_OK || dv_run_evaluate(other.run, &b, &error) != DV_OK)
        complain(s, "%s: evaluation fails: %s", trained.plan->options.method, error.text);
    else if (a.loss != b.loss)
        complain(s, "%s: evaluated %.17g, and %.17g for inference alone", trained.plan->options.method, a.loss, b.loss);
    stop(other);
}

/* Parameters that are updated behind their backward become what gradients that are kept make of them. */
static void check_transient(const subject *s, const char *method) {
    static const char *const optimizers[] = {"sgd", "adamw", "rmsprop:momentum=0.9,centered=yes"};
    dv_plan_options options = dv_plan_options_default();
    options.method = method;
    options.freeze = s->freeze;
    options.optimizer = optimizers[s->seed % 3];
    running kept = start_with(s, &options, &unguarded);
    options.gradients = DV_GRADIENTS_TRANSIENT;
    running transient = start_with(s, &options, s->seed % 2 ? &unguarded : &apart);
    const dv_run_parameter *p, *q;
    for (uint64_t batch = 0; batch < 2; batch++) {
        double loss = step_on(s, kept, batch, batch), other_loss = step_on(s, transient, batch, batch);
        assert_ok(dv_run_update(kept.run, RATE, batch, &error));
        if (loss != other_loss)
            complain(s, "%s: loss %.17g, and %.17g with transient gradients", method, loss, other_loss);
    }
    for (size_t k = 0; (p = dv_run_parameter_at(kept.run, k)) && (q = dv_run_parameter_at(transient.run, k)); k++)
        if (memcmp(p->data, q->data, p->count * sizeof(float)) != 0)
            complain(s, "%s, %s: another %s with transient gradients", method, options.optimizer, p->name);
    stop(kept);
    stop(transient);
}

/* How far gradients are from exact ones, of their norm: nothing, where they must be the same. */
static void check_distance(const subject *s, const char *method, const float *found, double allowed) {
    double distance = 0, norm = 0;
    if (allowed == 0 && memcmp(found, s->exact, s->count * sizeof *found) != 0)
        complain(s, "%s: gradients that differ from those of none", method);
    for (size_t i = 0; i < s->count; i++) {
        distance += pow((double)found[i] - (double)s->exact[i], 2);
        norm += pow((double)s->exact[i], 2);
    }
    norm = sqrt(norm) + 1e-30; /* of a network without parameters too, whatever is allowed */
    if (!s->flat && !(sqrt(distance) <= allowed * norm))
        complain(s, "%s: gradients are off by %.4f of their norm", method, sqrt(distance) / norm);
}

/* All that must be the same to the last bit with one method. */
static void check_method(const subject *s, const char *method, bool learns, double distance) {
    running fresh = start(s, method, &unguarded);
    double loss = step(s, fresh);
    float *found = gradients_of(s, fresh);
    if (loss != s->loss)
        complain(s, "%s: loss %.17g, and %.17g with none", method, loss, s->loss);
    check_distance(s, method, found, distance);
    check_apart(s, fresh, loss);
    if (!learns)
        check_later_step(s, fresh, loss);
    check_inference(s, fresh);
    free(found);
    stop(fresh);
}

/* ---- frozen layers --------------------------------------------------------------------------- */

/* Adds a name to the list of what is not trained. */
static void add_frozen(subject *s, const char *layer, const char *parameter) {
    size_t length = strlen(s->freeze);
    int written = snprintf(s->freeze + length, FREEZE_BYTES - length, "%s%s%s%s", length ? "," : "", layer,
                           *parameter ? "." : "", parameter);
    assert_true(written >= 0 && (size_t)written < FREEZE_BYTES - length);
}

/* Some layers, and some parameters of others, but never the last parameter. Often a part at the beginning. */
static void choose_frozen(subject *s) {
    dice d = dice_of(s->seed, 7);
    size_t left = 0, first = chance(&d, 50) ? roll(&d, 0, s->graph->layer_count) : 0;
    for (size_t i = 0; i < s->graph->layer_count; i++)
        left += s->graph->layers[i].layer.parameter_count;
    for (size_t i = 0; i < s->graph->layer_count; i++) {
        const dv_layer *layer = &s->graph->layers[i].layer;
        bool whole = (i < first || chance(&d, 30)) && left > layer->parameter_count && layer->parameter_count > 0;
        if (whole)
            add_frozen(s, layer->name, "");
        for (size_t k = 0; k < layer->parameter_count; k++)
            if (left-- > 1 && !whole && chance(&d, 10))
                add_frozen(s, layer->name, layer->parameters[k].name);
    }
}

/* What is frozen, parameters and running statistics, is as it was at first, and has no more than itself. */
static void check_unmoved(const subject *s, running r) {
    running first = start(s, "none", &unguarded);
    const dv_run_parameter *now, *then;
    for (size_t k = 0; (now = dv_run_parameter_at(r.run, k)) && (then = dv_run_parameter_at(first.run, k)); k++) {
        if (!is_of_frozen(r, k))
            continue;
        if (now->gradient || now->optimizer || now->average)
            complain(s, "%s is frozen, and has a gradient, optimizer's arrays or an average", now->name);
        if (memcmp(now->data, then->data, now->count * sizeof(float)) != 0)
            complain(s, "%s is frozen, and has moved", now->name);
    }
    stop(first);
}

/* Whether a batch norm is frozen, and so computes something else than it does in training. */
static bool has_frozen_norm(running r) {
    const dv_run_parameter *p;
    for (size_t k = 0; (p = dv_run_parameter_at(r.run, k)); k++)
        if (is_statistic(p) && is_of_frozen(r, k))
            return true;
    return false;
}

/* Where no batch norm is frozen, the loss is that of the whole network, and so are the gradients of what is trained. */
static void check_whole(const subject *s, running frozen) {
    subject whole = *s;
    const dv_run_parameter *p, *q;
    if (has_frozen_norm(frozen))
        return;
    *whole.freeze = '\0';
    running other = start(&whole, "none", &unguarded);
    double loss = step(&whole, other);
    if (loss != s->loss)
        complain(s, "loss %.17g, and %.17g if nothing is frozen", s->loss, loss);
    for (size_t k = 0; (p = dv_run_parameter_at(frozen.run, k)) && (q = dv_run_parameter_at(other.run, k)); k++)
        if (p->gradient && memcmp(p->gradient, q->gradient, p->count * sizeof(float)) != 0)
            complain(s, "gradient of %s: another than if nothing is frozen", p->name);
    stop(other);
}

/* ---- finite differences ---------------------------------------------------------------------- */

/* The parameters that a direction moves, and by how much. */
typedef struct direction {
    float *first; /* [count] parameters */
    float *by;    /* [count] */
    double slope; /* along it, by the gradients */
    double scale; /* of slopes along such directions */
} direction;

/* Half of the parameters, each element up or down by the root mean square of its array. */
static direction random_direction(const subject *s, dv_run *run, uint64_t number) {
    direction to = {.first = calloc(s->count + 1, sizeof(float)), .by = calloc(s->count + 1, sizeof(float))};
    dice d = dice_of(s->seed, 100 + number);
    const dv_run_parameter *p;
    double variance = 0;
    size_t at = 0;
    for (size_t k = 0; (p = dv_run_parameter_at(run, k)); k++) {
        double square = 0;
        for (size_t i = 0; i < p->count; i++)
            square += (double)p->data[i] * (double)p->data[i] / (double)p->count;
        float size = chance(&d, 50) ? (float)sqrt(square) : 0;
        for (size_t i = 0; p->gradient && i < p->count; i++, at++) {
            to.first[at] = p->data[i];
            to.by[at] = chance(&d, 50) ? size : -size;
            to.slope += (double)to.by[at] * (double)s->exact[at];
            variance += pow((double)to.by[at] * (double)s->exact[at], 2);
        }
    }
    to.scale = sqrt(variance);
    return to;
}

static void direction_free(direction *to) {
    free(to->first);
    free(to->by);
}

static void move(dv_run *run, const direction *to, float far) {
    const dv_run_parameter *p;
    size_t at = 0;
    for (size_t k = 0; (p = dv_run_parameter_at(run, k)); k++)
        for (size_t i = 0; p->gradient && i < p->count; i++, at++)
            p->data[i] = to->first[at] + far * to->by[at];
}

static double loss_at(const subject *s, running r, const direction *to, double far) {
    move(r.run, to, (float)far);
    double loss = step(s, r);
    move(r.run, to, 0);
    return loss;
}

/* How far a slope is from that of the loss over a step of `far`: over both sides, or one of them. If a kink of a ReLU
 * or a maximum is near, and it is on one side, the other one tells. */
static double slope_error(const subject *s, running r, const direction *to, double far) {
    double ahead = (loss_at(s, r, to, far) - s->loss) / far, behind = (s->loss - loss_at(s, r, to, -far)) / far;
    double one_side = fmin(fabs(ahead - to->slope), fabs(behind - to->slope));
    return fmin(one_side, fabs((ahead + behind) / 2 - to->slope));
}

/* Long steps are wrong where the loss is curved or has many kinks, short ones by rounding: a slope is right if that of
 * one step is within 2 %, plus what rounding may do, and wrong if those of many steps differ that rounding leaves
 * alone. Of some nothing can be said. */
static void check_slope(const subject *s, running r, uint64_t number) {
    direction to = random_direction(s, r.run, number);
    double least = INFINITY, rounded = 3e-7 * (1 + fabs(s->loss));
    int tried = 0;
    bool right = false;
    for (int k = 4; k <= 14 && !right; k++) {
        double far = ldexp(1, -k), tolerance = 0.02 * (fabs(to.slope) + to.scale);
        if (rounded / far > tolerance)
            break;
        double wrong_by = slope_error(s, r, &to, far);
        right = wrong_by <= tolerance + rounded / far;
        least = fmin(least, wrong_by);
        tried++;
    }
    bool wrong = !right && tried >= ENOUGH_STEPS && !s->flat;
    if (wrong)
        complain(s, "direction %d: slope %g by gradients, %g away from all finite differences", (int)number, to.slope,
                 least);
    most.slopes += to.scale > 0;
    most.inconclusive += to.scale > 0 && !right && !wrong;
    direction_free(&to);
}

/* ---- rounding and noise ---------------------------------------------------------------------- */

static double norm_of(const float *x, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

static double distance_of(const float *a, const float *b, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum);
}

/* A graph in f32, and what its gradients become if something is rounded: more where a ReLU or a maximum is near to
 * deciding otherwise, or a deviation is small. */
typedef struct rounding {
    subject wide;
    running run;
    double usual[MOST_ARRAYS]; /* how far the gradient of each parameter has gone */
} rounding;

/* Another step, with parameters that are moved by about as much as bf16 rounds. */
static void round_again(rounding *r, uint64_t number) {
    const dv_run_parameter *p;
    direction to = random_direction(&r->wide, r->run.run, 50 + number);
    move(r->run.run, &to, 0x1p-7f);
    step(&r->wide, r->run);
    move(r->run.run, &to, 0);
    direction_free(&to);
    const float *exact = r->wide.exact;
    for (size_t k = 0; (p = dv_run_parameter_at(r->run.run, k)) && k < MOST_ARRAYS; k++)
        if (p->gradient) {
            r->usual[k] = fmax(r->usual[k], distance_of(exact, p->gradient, p->count));
            exact += p->count;
        }
}

/* The first parameter whose gradient in bf16 rounding does not explain, or NULL. What is summed up for a bias may be
 * rounded as it would for the weights before it, and be next to nothing itself, as it is before a batch norm. */
static const dv_run_parameter *unexplained(const subject *s, const rounding *r) {
    const dv_run_parameter *p;
    size_t at = 0;
    double all = norm_of(r->wide.exact, s->count), before = 0;
    for (size_t k = 0; (p = dv_run_parameter_at(r->run.run, k)) && k < MOST_ARRAYS; k++) {
        if (!p->gradient)
            continue;
        double own = norm_of(r->wide.exact + at, p->count), norm = p->rank == 1 ? fmax(own, before) : own;
        before = own;
        if (!(distance_of(r->wide.exact + at, s->exact + at, p->count) <= 4 * r->usual[k] + 0.15 * norm + 0.05 * all))
            return p;
        at += p->count;
    }
    return NULL;
}

/* Against the same graph in f32. Most are explained by the first few roundings. */
static void check_rounding(const subject *s) {
    rounding r = {.wide = *s};
    r.wide.type = DV_F32;
    r.wide.graph = random_graph(s->seed, DV_F32);
    r.run = start(&r.wide, "none", &unguarded);
    r.wide.loss = step(&r.wide, r.run);
    r.wide.exact = gradients_of(&r.wide, r.run);
    const dv_run_parameter *p = NULL;
    for (uint64_t k = 0; !s->flat && k < MOST_ROUNDINGS && (k < 3 || p); k++) {
        round_again(&r, k);
        p = unexplained(s, &r);
    }
    if (p)
        complain(s, "gradient of %s: not that in f32, nor what rounding makes of it", p->name);
    if (!(fabs(r.wide.loss - s->loss) <= 0.02 * (1 + fabs(r.wide.loss))))
        complain(s, "loss %g, and %g in f32", s->loss, r.wide.loss);
    free(r.wide.exact);
    stop(r.run);
    dv_graph_free(r.wide.graph);
}

/* The difference of two gradients, projected on a random direction: the signs are a key's sequence. */
static double projected(const float *a, const float *b, size_t count, dv_random key) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (dv_random_word(key, (uint32_t)i) & 1 ? 1 : -1) * ((double)a[i] - (double)b[i]);
    return sum;
}

/* What packing does to gradients, over many draws of the dither. */
typedef struct noise {
    double sum, squares; /* of the projected differences */
    double norm;         /* of the exact gradients, on average */
    double distance;     /* from them, on average */
} noise;

/* Dither is another with every number of the batch, and so is dropout: each draw has its own exact gradient. */
static noise measure_noise(const subject *s, const char *method) {
    running exact = start(s, "none", &unguarded), packed = start(s, method, &unguarded);
    dv_random key = dice_of(s->seed, 5).key;
    noise n = {0};
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        step_on(s, exact, BATCH_NUMBER, draw);
        step_on(s, packed, BATCH_NUMBER, draw);
        float *a = gradients_of(s, packed), *b = gradients_of(s, exact);
        double x = projected(a, b, s->count, key);
        n.sum += x;
        n.squares += x * x;
        n.norm += norm_of(b, s->count) / DRAWS;
        n.distance += distance_of(a, b, s->count) / DRAWS;
        free(a);
        free(b);
    }
    stop(exact);
    stop(packed);
    return n;
}

/* The mean must be within five of its own deviations, but for what rounding does, which dither does not reach. */
static void check_noise(const subject *s, const char *method) {
    noise n = measure_noise(s, method);
    double mean = n.sum / DRAWS, deviation = sqrt(fmax(n.squares / DRAWS - mean * mean, 0) / (DRAWS - 1));
    double rounded = (s->type == DV_F32 ? 0x1p-22 : 0x1p-9) * n.norm;
    double z = fabs(mean) / (deviation + rounded + 1e-30), distance = n.distance / (n.norm + 1e-30);
    if (!(z < 5 && (distance < 0.1 || s->flat)))
        complain(s, "%s: gradients are off by %.2f deviations on average, by %.4f of their norm in a step", method, z,
                 distance);
    most.z = fmax(most.z, z);
    most.distance = s->flat ? most.distance : fmax(most.distance, distance);
}

/* ---- one graph ------------------------------------------------------------------------------- */

static void check_graph(uint64_t seed) {
    dice d = dice_of(seed, 3);
    subject s = {.seed = seed, .type = chance(&d, 40) ? DV_BF16 : DV_F32};
    size_t slice = chance(&d, 50) ? 0 : roll(&d, 256, 8192);
    int threads = seed % 20 == 0 ? 2 : 1;
    omp_set_num_threads(threads);
    dv_slice_bytes_force(slice);
    dv_slicing_force(seed % 3 == 0 ? DV_SLICING_AS_EVER : DV_SLICING_ALWAYS);
    dv_spill_least_force(1); /* whatever can be is in a file */
    s.graph = random_graph(seed, s.type);
    most.maps += s.graph->values[s.graph->logits].map.rank > 0;
    print_message("graph of seed %llu: %s, %zu layers\n", (unsigned long long)seed, dv_type_name(s.type),
                  s.graph->layer_count);
    fflush(stdout); /* whatever happens, it is known where */
    if (chance(&d, 40))
        choose_frozen(&s);
    running exact = start(&s, "none", &unguarded);
    s.count = gradients(exact.run, NULL);
    s.loss = step(&s, exact);
    s.exact = gradients_of(&s, exact);
    s.flat = has_flat_channels(exact);
    if (*s.freeze) {
        check_unmoved(&s, exact);
        check_whole(&s, exact);
    }
    for (size_t i = 0; i < EXACT_METHODS; i++)
        check_method(&s, exact_methods[i], false, 0);
    for (size_t i = 0; i < PACKED_METHODS; i++)
        check_method(&s, packed_methods[i], false, INFINITY);
    for (size_t i = 0; i < OTHER_METHODS; i++)
        check_method(&s, other_methods[i].text, other_methods[i].learns, other_methods[i].distance);
    check_transient(&s, method_at(seed));
    for (uint64_t k = 0; s.type == DV_F32 && k < DIRECTIONS; k++)
        check_slope(&s, exact, k);
    if (s.type == DV_BF16)
        check_rounding(&s);
    if (threads == 1)
        check_noise(&s, packed_methods[roll(&d, 0, PACKED_METHODS - 1)]);
    stop(exact);
    free(s.exact);
    dv_graph_free(s.graph);
    dv_slice_bytes_force(0);
    dv_slicing_force(DV_SLICING_AS_EVER);
    dv_spill_least_force(0);
}

/* ---- all of them ------------------------------------------------------------------------------ */

static size_t number_from(const char *variable, size_t otherwise) {
    const char *text = getenv(variable);
    return text && *text ? (size_t)strtoull(text, NULL, 10) : otherwise;
}

static void random_graphs(void **state) {
    (void)state;
    size_t first = number_from("DV_RANDOM_SEED", 1);
    size_t count = number_from("DV_RANDOM_GRAPHS", test_scale() > 1 ? 20 : 200);
    for (size_t seed = first; seed < first + count; seed++)
        check_graph(seed);
    print_message("%zu graphs, %zu with maps as logits, %zu faults; %zu slopes, %zu of them not to be told; packed "
                  "gradients off by %.2f deviations "
                  "at most on average, by %.4f of their norm in a step\n",
                  count, most.maps, faults, most.slopes, most.inconclusive, most.z, most.distance);
    assert_true(most.inconclusive <= 2 + most.slopes / 20);
    assert_int_equal(faults, 0);
}

static bool is_in_table(const char *function) {
    bool found = strcmp(function, "input") == 0; /* which every graph has */
    for (size_t i = 0; i < RANDOM_BUILDERS; i++)
        found = found || strcmp(random_builders[i].function, function) == 0;
    return found;
}

/* Whatever include/division/graph.h has to build graphs with must be in the table. */
static void every_function_is_tried(void **state) {
    (void)state;
    static const char before[] = "DV_API dv_value dv_graph_";
    const char *folder = getenv("DV_SOURCE_DIR");
    char path[4096], line[512];
    if (!folder)
        leave_out("the header's functions: DV_SOURCE_DIR does not say where it is");
    snprintf(path, sizeof path, "%s/include/division/graph.h", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t found = 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, before, strlen(before)) != 0)
            continue;
        line[strlen(before) + strcspn(line + strlen(before), "(")] = '\0';
        if (!is_in_table(line + strlen(before)))
            fail_msg("dv_graph_%s is not in the table of tests/random_graph.h", line + strlen(before));
        found++;
    }
    fclose(file);
    assert_true(found > RANDOM_BUILDERS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_function_is_tried), cmocka_unit_test(random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
