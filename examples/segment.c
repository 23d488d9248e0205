/* Segmentation: a small U-Net learns to say of every pixel whether it is ground, disc, rectangle or triangle.
 *
 *     OMP_WAIT_POLICY=passive segment [EPOCHS [METHOD]]        24 epochs of 512 images with `division` if not told
 *
 * The images are made up from a seed: coloured shapes on a textured ground. Colours say nothing of the kind of shape,
 * so that the network has to see outlines. No image comes twice, and those of the tests are never trained on.
 *
 * A step is made of its calls, dv_run_forward, dv_run_loss and dv_run_backward. A loss of your own goes in place of the
 * second: read dv_run_logits, write dv_run_logits_gradient. */
#include <division/division.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIDE = 32, PIXELS = SIDE * SIDE, CLASSES = 4, BATCH = 16, EPOCH_BATCHES = 32, TEST_BATCHES = 8 };
enum { TEST_IMAGES = 1 << 30 }; /* their numbers begin here */

static void check(dv_status status, const dv_error *error) {
    if (status == DV_OK)
        return;
    fprintf(stderr, "segment: %s\n", error->text);
    exit(1);
}

/* ---- the images ------------------------------------------------------------------------------ */

/* Numbers from 0 to 1 of an image, which follow from its number alone. */
typedef struct dice {
    uint64_t state;
} dice;

static float roll(dice *d) {
    d->state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = d->state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)((z ^ z >> 31) >> 40) * 0x1p-24f;
}

static float between(dice *d, float least, float most) {
    return least + (most - least) * roll(d);
}

/* Stripes of two frequencies and noise around a colour. */
static void draw_ground(dice *d, const float *colour, float *image) {
    float across = between(d, -0.8f, 0.8f), down = between(d, -0.8f, 0.8f), phase = between(d, 0, 6);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            float at = across * (float)x + down * (float)y + phase, stripe = 0.15f * sinf(at) + 0.1f * sinf(3 * at);
            for (int c = 0; c < 3; c++)
                image[3 * (y * SIDE + x) + c] = colour[c] + stripe + between(d, -0.15f, 0.15f);
        }
}

/* A shape of `kind` and radius 1 around 0: whether it has the point. */
static int is_inside(int kind, float x, float y) {
    if (kind == 1)
        return x * x + y * y < 1;
    if (kind == 2)
        return fabsf(x) < 0.9f && fabsf(y) < 0.7f;
    return y < 0.6f && y > 1.9f * fabsf(x) - 1;
}

typedef struct shape {
    int kind;
    float x, y, radius, angle;
} shape;

static shape roll_shape(dice *d) {
    shape s = {.kind = 1 + (int)between(d, 0, CLASSES - 1.001f), .radius = between(d, 5, 9)};
    s.x = between(d, s.radius, SIDE - s.radius);
    s.y = between(d, s.radius, SIDE - s.radius);
    s.angle = between(d, 0, 6.283f);
    return s;
}

/* The shape, turned, in a colour away from the ground's. */
static void draw_shape(dice *d, const shape *s, const float *ground, float *image, int32_t *labels) {
    float across = cosf(s->angle) / s->radius, down = sinf(s->angle) / s->radius, colour[3];
    for (int i = 0; i < 3; i++)
        colour[i] = ground[i] + (ground[i] > 0 ? -1 : 1) * between(d, 0.5f, 1.2f);
    for (int p = 0; p < PIXELS; p++) {
        int row = p / SIDE, column = p % SIDE;
        float x = (float)column - s->x, y = (float)row - s->y;
        if (!is_inside(s->kind, across * x + down * y, across * y - down * x))
            continue;
        labels[p] = s->kind;
        for (int i = 0; i < 3; i++)
            image[3 * p + i] = colour[i] + between(d, -0.15f, 0.15f);
    }
}

/* Image [SIDE][SIDE][3] and labels [SIDE][SIDE] of a number: a shape, and a second one where it does not touch the
 * first. */
static void draw(uint64_t number, float *image, int32_t *labels) {
    dice d = {number * 1000003};
    float ground[3];
    for (int i = 0; i < 3; i++)
        ground[i] = between(&d, -0.8f, 0.8f);
    draw_ground(&d, ground, image);
    for (int p = 0; p < PIXELS; p++)
        labels[p] = 0;
    shape first = roll_shape(&d), second = roll_shape(&d);
    draw_shape(&d, &first, ground, image, labels);
    if (hypotf(first.x - second.x, first.y - second.y) > first.radius + second.radius)
        draw_shape(&d, &second, ground, image, labels);
}

/* The batch of images `first` .. `first` + BATCH - 1. */
static void fill(dv_run *run, uint64_t first) {
    float *images = dv_run_input(run);
    int32_t *labels = dv_run_labels(run);
    for (uint64_t n = 0; n < BATCH; n++)
        draw(first + n, images + n * 3 * PIXELS, labels + n * PIXELS);
}

/* ---- the network ----------------------------------------------------------------------------- */

/* "down1.conv2". The graph copies names. */
static const char *name_of(const char *block, const char *layer, int number) {
    static char name[64];
    snprintf(name, sizeof name, "%s.%s%d", block, layer, number);
    return name;
}

static dv_value convolve(dv_graph *graph, const char *block, int number, dv_value x, size_t channels) {
    const dv_convolution_options options = {.channels = channels, .window = dv_window_square(3, 1, 1), .groups = 1};
    x = dv_graph_convolution(graph, name_of(block, "conv", number), x, &options);
    x = dv_graph_batch_norm(graph, name_of(block, "bn", number), x);
    return dv_graph_relu(graph, name_of(block, "relu", number), x);
}

static dv_value twice(dv_graph *graph, const char *block, dv_value x, size_t channels) {
    return convolve(graph, block, 2, convolve(graph, block, 1, x, channels), channels);
}

/* Half the sides. */
static dv_value down(dv_graph *graph, const char *block, dv_value x, size_t channels) {
    const dv_pooling_options half = {.window = dv_window_square(2, 2, 0)};
    return twice(graph, block, dv_graph_max_pooling(graph, name_of(block, "pool", 1), x, &half), channels);
}

/* Twice the sides, beside what had these sides on the way down. */
static dv_value up(dv_graph *graph, const char *block, dv_value x, dv_value beside, size_t channels) {
    const dv_convolution_options options = {
        .channels = channels, .window = dv_window_square(2, 2, 0), .groups = 1, .bias = true};
    dv_value both[] = {beside, dv_graph_transposed_convolution(graph, name_of(block, "up", 1), x, &options)};
    return twice(graph, block, dv_graph_concatenation(graph, name_of(block, "join", 1), both, 2), channels);
}

/* Logits are a map: CLASSES for every pixel. */
static dv_graph *unet(void) {
    const dv_convolution_options classify = {
        .channels = CLASSES, .window = dv_window_square(1, 1, 0), .groups = 1, .bias = true};
    dv_error error;
    dv_graph *graph;
    check(dv_graph_new(DV_F32, BATCH, &graph, &error), &error);
    dv_value whole = twice(graph, "down1", dv_graph_input(graph, 3, 2, (const size_t[]){SIDE, SIDE}), 16);
    dv_value half = down(graph, "down2", whole, 32);
    dv_value quarter = down(graph, "down3", half, 64);
    dv_value eighth = down(graph, "down4", quarter, 64);
    dv_value x = up(graph, "up3", eighth, quarter, 64);
    x = up(graph, "up2", x, half, 32);
    x = up(graph, "up1", x, whole, 16);
    x = dv_graph_convolution(graph, "classify", x, &classify);
    check(dv_graph_finish(graph, dv_graph_softmax_cross_entropy(graph, "loss", x), &error), &error);
    return graph;
}

/* ---- training -------------------------------------------------------------------------------- */

/* One step; returns its loss. */
static double step(dv_run *run, uint64_t number, double rate) {
    dv_step_result result;
    dv_error error;
    fill(run, number * BATCH);
    check(dv_run_forward(run, &(dv_step){.batch = number, .rate = rate, .update = number}, &error), &error);
    check(dv_run_loss(run, &result, &error), &error);
    check(dv_run_backward(run, &error), &error);
    return result.loss;
}

/* Part of the pixels of unseen images that are told rightly. */
static double test(dv_run *run) {
    size_t correct = 0, counted = 0;
    for (uint64_t i = 0; i < TEST_BATCHES; i++) {
        dv_step_result result;
        dv_error error;
        fill(run, TEST_IMAGES + i * BATCH);
        check(dv_run_predict(run, &error), &error);
        check(dv_run_loss(run, &result, &error), &error);
        correct += result.correct;
        counted += result.counted;
    }
    return (double)correct / (double)counted;
}

/* One unseen image as it is, and beside it as the network sees it; every other row. */
static void show(dv_run *run) {
    static const char letters[CLASSES + 1] = ".OHA";
    dv_error error;
    fill(run, TEST_IMAGES);
    check(dv_run_set_images(run, 1, &error), &error);
    check(dv_run_predict(run, &error), &error);
    const float *logits = dv_run_logits(run);
    const int32_t *labels = dv_run_labels(run);
    for (int y = 0; y < SIDE; y += 2) {
        for (int x = 0; x < SIDE; x++)
            putchar(letters[labels[y * SIDE + x]]);
        printf("   ");
        for (int x = 0; x < SIDE; x++) {
            const float *z = logits + (size_t)(y * SIDE + x) * CLASSES;
            int most = 0;
            for (int k = 1; k < CLASSES; k++)
                most = z[k] > z[most] ? k : most;
            putchar(letters[most]);
        }
        putchar('\n');
    }
}

static void train(dv_run *run, long epochs) {
    uint64_t steps = (uint64_t)epochs * EPOCH_BATCHES;
    time_t start = time(NULL);
    for (uint64_t i = 0; i < steps; i += EPOCH_BATCHES) {
        double loss = 0;
        for (uint64_t k = i; k < i + EPOCH_BATCHES; k++)
            loss += step(run, k, 0.1 * (1 - (double)k / (double)steps)) / EPOCH_BATCHES;
        printf("epoch %2d: loss %.3f, pixels right %5.2f %%, %3.0f s\n", (int)(i / EPOCH_BATCHES) + 1, loss,
               100 * test(run), difftime(time(NULL), start));
        fflush(stdout);
    }
}

int main(int count, char **arguments) {
    long epochs = count > 1 ? strtol(arguments[1], NULL, 10) : 24;
    dv_plan_options options = dv_plan_options_default();
    dv_error error;
    dv_plan *plan;
    dv_run *run;
    if (epochs < 1 || epochs > 10000 || count > 3) {
        fprintf(stderr, "usage: segment [EPOCHS [METHOD]]\n");
        return 2;
    }
    dv_graph *graph = unet();
    options.method = count > 2 ? arguments[2] : "division";
    options.optimizer = "sgd:momentum=0.9,decay=5e-4";
    options.gradients = DV_GRADIENTS_TRANSIENT; /* backward updates the weights */
    check(dv_plan_new(graph, &options, &plan, &error), &error);
    check(dv_run_new(plan, 1, &run, &error), &error);
    dv_plan_summary bytes = dv_plan_totals(plan);
    printf("%s: %.1f MB, of which %.1f MB are kept for backward\n", options.method, (double)bytes.planned / 1e6,
           (double)bytes.activations / 1e6);
    train(run, epochs);
    show(run);
    dv_run_free(run);
    dv_plan_free(plan);
    dv_graph_free(graph);
    return 0;
}
