/* The choice for a memory budget: as good as the best of all choices there are, where these can be counted; never worse
 * with more memory; what a probe finds. */
#include "budget/pool.h"
#include "budget/probe.h"
#include "check.h"

#include <division/models.h>

enum { BATCH = 8, SIDE = 16, MOST = 64 };

/* What a choice takes beyond `none`, by what the best of all choices takes. Bytes are those of this machine's plans,
 * whose workspaces differ with instruction sets and threads, for both alike: with 1 to 12 threads and 12 seeds the
 * search found the best itself. It is a search all the same, and may miss it by a little where plans are of other
 * sizes. */
static const double MARGIN = 1.25;

/* A network of few values: two convolutions with norms, and what follows. */
static dv_graph *small_network(size_t batch) {
    const dv_convolution_options convolution = {.channels = 8, .window = dv_window_square(3, 1, 1), .groups = 1};
    dv_graph *g;
    assert_ok(dv_graph_new(DV_F32, batch, &g, &error));
    dv_value x = dv_graph_input(g, 3, 2, (const size_t[]){SIDE, SIDE});
    x = dv_graph_convolution(g, "conv1", x, &convolution);
    x = dv_graph_relu(g, "relu1", dv_graph_batch_norm(g, "bn1", x));
    x = dv_graph_convolution(g, "conv2", x, &convolution);
    x = dv_graph_relu(g, "relu2", dv_graph_batch_norm(g, "bn2", x));
    x = dv_graph_convolution(g, "conv3", x, &convolution);
    x = dv_graph_global_average_pooling(g, "pool", x);
    x = dv_graph_linear(g, "fc", x, &(dv_linear_options){.channels = 10, .bias = true});
    assert_ok(dv_graph_finish(g, x, &error));
    return g;
}

/* Noise of one value: `more` times as much through others as directly; a little goes back. */
static dv_value_noise made_up_noise(double direct, double more) {
    static const double by_code[DV_NOISE_KINDS] = {
        [DV_NOISE_CODE] = 1, [DV_NOISE_OUTSIDE] = 2, [DV_NOISE_LEAN] = 0.5, [DV_NOISE_FLOOR] = 0.02};
    dv_value_noise noise;
    for (int kind = 0; kind < DV_NOISE_KINDS; kind++) {
        noise.direct[kind] = direct * by_code[kind];
        noise.through[kind] = more * noise.direct[kind];
        noise.back[kind] = 0.1 * noise.direct[kind];
    }
    return noise;
}

/* What is known of it, made up by `seed`. */
static dv_profile *made_up(const dv_graph *graph, unsigned seed) {
    dv_profile *profile;
    assert_ok(dv_profile_allocate(graph->layer_count + 1, &profile, &error));
    profile->images = BATCH;
    profile->images_seconds = 1e-3;
    for (size_t i = 0; i < profile->value_count; i++) {
        seed = seed * 1103515245u + 12345u;
        profile->noise[i] = made_up_noise(0.001 * (1 + (seed >> 16) % 50), (seed >> 24) % 4);
        profile->forward[i] = 5e-5;
    }
    for (size_t c = 0; dv_candidate_at(c); c++)
        if (dv_candidate_at(c)->codec) {
            profile->encode[c] = 1e-9 * (1 + 0.1 * dv_candidate_at(c)->bits);
            profile->decode[c] = 0.8 * profile->encode[c];
        }
    profile->recompute = 1.2e-9;
    profile->steady[DV_NOISE_CODE] = profile->steady[DV_NOISE_LEAN] = 0.5;
    return profile;
}

/* ---- against all choices ----------------------------------------------------------------------- */

/* Adds every choice of exact values, codes of two widths, lean ones and recomputed values, value after value. */
static void add_all(dv_pool *pool, const dv_plan *plan, char *letters, size_t index) {
    if (index == pool->sites.count) {
        assert_ok(dv_pool_add(pool, letters, NULL, &error));
        return;
    }
    if (!pool->sites.at[index].read)
        letters[index] = DV_UNREAD;
    if (!pool->sites.at[index].read || !pool->sites.at[index].map) {
        letters[index] = pool->sites.at[index].read ? DV_EXACT : DV_UNREAD;
        add_all(pool, plan, letters, index + 1);
        return;
    }
    for (size_t c = 0; dv_candidate_at(c); c++) {
        char letter = dv_candidate_at(c)->letter;
        if (strchr("psadmnw", letter) || /* replayed, spilled, and some of the codes */
            !dv_candidate_can(dv_candidate_at(c), plan, dv_value_of_letter(pool->graph, index)))
            continue;
        letters[index] = letter;
        add_all(pool, plan, letters, index + 1);
    }
}

/* The least seconds, or noise, of all that fit; -1: none does, because it takes one that is left out. */
static double best_of(const dv_pool *pool, size_t bytes, double noise, double seconds, bool prefer_noise) {
    double best = -1;
    for (size_t i = 0; i < pool->count; i++) {
        const dv_pool_choice *c = &pool->choices[i];
        double value = prefer_noise ? c->noise : c->seconds;
        if (c->planned <= bytes && c->noise <= noise && c->seconds <= seconds && (best < 0 || value < best))
            best = value;
    }
    return best;
}

static void is_nearly_the_best_there_is(void **state) {
    (void)state;
    dv_graph *graph = small_network(BATCH);
    dv_plan_options options = dv_plan_options_default();
    for (unsigned seed = 1; seed <= 3; seed++) {
        dv_profile *profile = made_up(graph, seed);
        dv_pool all = {.graph = graph, .options = &options, .profile = profile};
        dv_budget_limits limits = {.noise = -1};
        dv_budget *budget;
        dv_plan *plan;
        char letters[MOST] = "";
        options.method = "none";
        assert_ok(dv_plan_new(graph, &options, &plan, &error));
        assert_ok(dv_pool_begin(&all, &error));
        add_all(&all, plan, letters, 0);
        assert_true(all.count > 500);
        assert_ok(dv_budget_new(graph, &options, profile, &limits, &budget, &error));
        double noise = dv_budget_division(budget)->noise, none = dv_budget_none(budget)->seconds;
        size_t least = dv_budget_point_at(budget, 0)->planned, most = dv_budget_none(budget)->planned;
        assert_true(best_of(&all, least - least / 50, noise, 1e9, false) < 0);
        for (int i = 0; i <= 10; i++) {
            size_t bytes = least + (most - least) * (size_t)i / 10;
            const dv_budget_point *chosen = dv_budget_choose(budget, bytes);
            double best = best_of(&all, bytes, noise, 1e9, false);
            assert_non_null(chosen);
            assert_true(chosen->planned <= bytes && chosen->noise <= noise);
            if (best >= 0 && chosen->seconds - none > MARGIN * (best - none) + 1e-9 * none)
                fail_msg("seed %u, %zu bytes: %g s, and %g s could be", seed, bytes, chosen->seconds, best);
        }
        dv_budget_free(budget);
        dv_pool_end(&all);
        dv_plan_free(plan);
        dv_profile_free(profile);
    }
    dv_graph_free(graph);
}

/* ---- the curve --------------------------------------------------------------------------------- */

static void more_memory_is_never_worse(void **state) {
    (void)state;
    static const char *const models[] = {"resnet20"};
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        const dv_model_options small = {.type = DV_F32, .batch = 2, .side = 32, .classes = 10};
        dv_plan_options options = dv_plan_options_default();
        dv_graph *graph;
        assert_ok(dv_model_build_with(models[m], &small, &graph, &error));
        dv_profile *profile = made_up(graph, 7);
        for (int prefer = 0; prefer < 2; prefer++) {
            const dv_budget_limits limits = {.noise = -1, .prefer = (dv_prefer)prefer};
            const dv_budget_point *p, *before = NULL;
            dv_budget *budget;
            assert_ok(dv_budget_new(graph, &options, profile, &limits, &budget, &error));
            for (size_t i = 0; (p = dv_budget_point_at(budget, i)); before = p, i++) {
                assert_true(!before || p->planned >= before->planned);
                assert_true(!before || (prefer ? p->noise <= before->noise : p->seconds <= before->seconds));
                assert_true(prefer ? p->seconds <= 1.25 * dv_budget_none(budget)->seconds
                                   : p->noise <= dv_budget_division(budget)->noise);
                assert_ptr_equal(dv_budget_choose(budget, p->planned), p);
            }
            p = dv_budget_point_at(budget, 0);
            assert_true(p->planned < dv_budget_none(budget)->planned);
            assert_null(dv_budget_choose(budget, p->planned - 1));
            assert_ptr_equal(dv_budget_choose(budget, SIZE_MAX), before);
            dv_budget_free(budget);
        }
        dv_profile_free(profile);
        dv_graph_free(graph);
    }
}

static void tells_what_cannot_be(void **state) {
    (void)state;
    dv_graph *graph = small_network(BATCH);
    dv_plan_options options = dv_plan_options_default();
    dv_budget_limits limits = {.noise = -1};
    dv_budget *budget;
    dv_profile *profile, *other;
    assert_ok(dv_profile_flat(graph, &profile, &error));
    assert_ok(dv_profile_allocate(3, &other, &error));
    assert_fails(dv_budget_new(graph, &options, other, &limits, &budget, &error), DV_ERROR_ARGUMENT,
                 "budget: the profile is of another network, with 3 values");
    assert_ok(dv_budget_new(graph, &options, profile, &limits, &budget, &error));
    dv_budget_free(budget);
    dv_profile_free(profile);
    dv_profile_free(other);
    dv_graph_free(graph);
}

/* ---- a probe ------------------------------------------------------------------------------------- */

static dv_status fill(void *context, size_t batch, dv_run *run, dv_error *error) {
    (void)context;
    (void)error;
    float *images = dv_run_input(run);
    size_t count = dv_map_elements(dv_run_input_map(run));
    for (size_t i = 0; i < count; i++)
        images[i] = (float)((i * 2654435761u + batch * 40503u) >> 7 & 1023) / 512 - 1;
    for (size_t n = 0; n < dv_run_input_map(run)->images; n++)
        dv_run_labels(run)[n] = (int32_t)((n + batch) % 10);
    return DV_OK;
}

/* Values of the small network, by their letters. */
enum { IMAGES, CONV1, NORM1, CONV2, NORM2 };

/* Noise stays where values are read: nothing is left of weights that moved, because none did. */
static void a_probe_finds_noise_and_time(void **state) {
    (void)state;
    dv_graph *graph = small_network(BATCH);
    dv_plan_options options = dv_plan_options_default();
    const dv_probe probe = {.batches = 4, .seed = 1, .fill = fill};
    dv_profile *profile;
    options.gradients = DV_GRADIENTS_TRANSIENT;
    assert_ok(dv_profile_new(graph, &options, &probe, 0, &profile, &error));
    const dv_value_noise *noise = profile->noise;
    assert_int_equal(profile->images, BATCH);
    assert_true(profile->images_seconds > 0 && profile->recompute > 0);
    for (int kind = 0; kind < DV_NOISE_KINDS; kind++) {
        if (kind != DV_NOISE_OUTSIDE) /* of outputs of norms alone */
            assert_true(noise[CONV1].back[kind] > 0);
        if (kind != DV_NOISE_FLOOR) /* of inputs of norms alone */
            assert_true(noise[NORM1].direct[kind] > 0);
        assert_true(noise[NORM1].through[kind] == 0 && noise[NORM1].back[kind] == 0);
        assert_true(noise[IMAGES].through[kind] == 0 && noise[IMAGES].back[kind] == 0);
    }
    assert_true(noise[IMAGES].direct[DV_NOISE_CODE] > 0 && noise[CONV1].direct[DV_NOISE_CODE] > 0);
    assert_true(noise[NORM1].direct[DV_NOISE_OUTSIDE] > 1.2 * noise[NORM1].direct[DV_NOISE_CODE]);
    assert_true(noise[CONV1].through[DV_NOISE_CODE] > noise[CONV1].direct[DV_NOISE_CODE]);
    assert_true(noise[CONV1].through[DV_NOISE_LEAN] > noise[CONV1].direct[DV_NOISE_LEAN]);
    assert_true(noise[CONV1].through[DV_NOISE_FLOOR] == 0);
    for (size_t c = 0; dv_candidate_at(c); c++)
        assert_int_equal(dv_candidate_at(c)->codec != NULL, profile->decode[c] > 0);
    dv_profile_free(profile);
    options.gradients = DV_GRADIENTS_KEPT;
    assert_ok(dv_profile_new(graph, &options, &probe, 0, &profile, &error));
    dv_profile_free(profile);
    assert_fails(dv_profile_new(graph, &options, &probe, 1000, &profile, &error), DV_ERROR_MEMORY, "probe: ");
    assert_fails(dv_profile_new(graph, &options, &(dv_probe){0}, 0, &profile, &error), DV_ERROR_ARGUMENT,
                 "probe: no function that fills in images");
    dv_graph_free(graph);
}

/* ---- predictions --------------------------------------------------------------------------------- */

/* What a choice puts into the gradient: the squared distance to the exact one by the variance of batches, as the mean
 * over all batches of a probe. */
static double measured_noise(dv_graph *graph, const dv_plan_options *options, const dv_probe *probe, double unit,
                             const char *method) {
    dv_probe_run exact, packed;
    double noise = 0;
    assert_ok(dv_probe_begin(graph, options, "none", probe, 0, &exact, &error));
    assert_ok(dv_probe_begin(graph, options, method, probe, 0, &packed, &error));
    for (size_t b = 0; b < probe->batches; b++) {
        assert_ok(dv_probe_step(&exact, probe, b, 100 + b, &error));
        assert_ok(dv_probe_step(&packed, probe, b, 100 + b, &error));
        noise += dv_probe_distance(&packed, exact.sample) / unit / (double)probe->batches;
    }
    dv_probe_end(&exact);
    dv_probe_end(&packed);
    return noise;
}

static double predicted_noise(const dv_profile *profile, dv_graph *graph, const dv_plan_options *options,
                              const char *letters) {
    dv_sites sites;
    assert_ok(dv_probe_sites(graph, options, &sites, &error));
    double noise = dv_predict_noise(profile, &sites, letters);
    dv_sites_free(&sites);
    return noise;
}

/* The choices that differ in what their noise is: by bits or levels, through what is recomputed or not, outside of a
 * mask or not, of one value that a norm reads. */
static const char *const choices[] = {"hlrlr-x-", "hbrbr-x-", "hlblb-x-", "xxbxb-x-", "xxlxl-x-", "xbxxx-x-",
                                      "xxxbx-x-", "hwrwr-x-", "xnrmr-x-", "dxxdr-x-", "bxxxx-x-", "xmxma-x-"};

enum { CHOICES = sizeof choices / sizeof *choices };

static const double FACTOR = 1.5;

static void is_as_predicted(const dv_profile *profile, dv_graph *graph, const dv_plan_options *options,
                            const dv_probe *probe, double unit, const char *letters) {
    char method[MOST];
    snprintf(method, sizeof method, "mixed:%s", letters);
    double predicted = predicted_noise(profile, graph, options, letters);
    double measured = measured_noise(graph, options, probe, unit, method);
    if (!(predicted < FACTOR * measured && measured < FACTOR * predicted))
        fail_msg("%s: predicted %g, measured %g", letters, predicted, measured);
}

/* With other random numbers than the probe's, and mostly of choices that it has not seen. */
static void noise_is_as_predicted(void **state) {
    (void)state;
    dv_graph *graph = small_network(BATCH);
    dv_plan_options options = dv_plan_options_default();
    const dv_probe probe = {.batches = 8, .seed = 1, .fill = fill};
    dv_profile *profile;
    assert_ok(dv_profile_new(graph, &options, &probe, 0, &profile, &error));
    for (size_t i = 0; i < CHOICES; i++)
        is_as_predicted(profile, graph, &options, &probe, profile->unit, choices[i]);
    dv_profile_free(profile);
    dv_graph_free(graph);
}

/* Of a probe with few images, for a training with many. */
static void noise_of_larger_batches_is_as_predicted(void **state) {
    (void)state;
    enum { LARGER = 4 * BATCH };
    dv_graph *graph = small_network(BATCH), *larger = small_network(LARGER);
    dv_plan_options options = dv_plan_options_default();
    const dv_probe probe = {.batches = 8, .seed = 1, .fill = fill};
    dv_profile *profile;
    assert_ok(dv_profile_new(graph, &options, &probe, 0, &profile, &error));
    assert_fails(dv_profile_add_larger(profile, graph, &options, &probe, 0, &error), DV_ERROR_ARGUMENT, "probe: ");
    assert_fails(dv_profile_add_larger(profile, larger, &options, &probe, 1000, &error), DV_ERROR_MEMORY, "probe: ");
    assert_true(profile->steady[DV_NOISE_CODE] == 1);
    assert_ok(dv_profile_add_larger(profile, larger, &options, &probe, 0, &error));
    for (size_t i = 0; i < CHOICES; i++)
        is_as_predicted(profile, larger, &options, &probe, profile->unit * BATCH / LARGER, choices[i]);
    dv_profile_free(profile);
    dv_graph_free(larger);
    dv_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_nearly_the_best_there_is), cmocka_unit_test(more_memory_is_never_worse),
        cmocka_unit_test(tells_what_cannot_be),        cmocka_unit_test(a_probe_finds_noise_and_time),
        cmocka_unit_test(noise_is_as_predicted),       cmocka_unit_test(noise_of_larger_batches_is_as_predicted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
