/* Measures the loader next to the decoder alone. Both are run in short rounds in turns, so that a machine that becomes
 * slower or faster meanwhile does so for both; the middle of the rounds' ratios counts. */
#include "base/status.h"
#include "data/dataset.h"
#include "data/image.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 7 };

typedef struct measurement {
    const dv_dataset *data;
    dv_loader *loader;
    dv_split split;
    size_t batch;    /* images */
    size_t prefetch; /* batches */
    int threads;     /* of the decoder */
    double round;    /* seconds */
    size_t next;     /* batch of the loader */
    size_t at;       /* image of the decoder */
    void *images;
    int32_t *labels;
} measurement;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double median(double values[ROUNDS]) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

/* Takes the next batch. */
static dv_status take(measurement *m, size_t *count, dv_error *error) {
    size_t batches = dv_loader_batches(m->loader), next = m->next++;
    return dv_loader_fill(m->loader, next / batches, next % batches, m->images, m->labels, count, error);
}

/* Waits until workers have made all that they make ahead, and have nothing to do. */
static void settle(const measurement *m, double speed) {
    double seconds = 1.5 * (double)(m->prefetch * m->batch) / speed;
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)}, NULL);
}

/* Batches for the time of a round. Those that were made before it began, and one more, are not counted. */
static dv_status run_loader(measurement *m, double *speed, dv_error *error) {
    size_t images = 0, count;
    for (size_t i = 0; i <= m->prefetch; i++)
        DV_TRY(take(m, &count, error));
    double start = now(), seconds = 0;
    while (images == 0 || seconds < m->round) {
        DV_TRY(take(m, &count, error));
        images += count;
        seconds = now() - start;
    }
    *speed = (double)images / seconds;
    settle(m, *speed);
    return DV_OK;
}

/* Decodes an image and forgets it; one that is corrupt takes its time, too. */
static void decode(const measurement *m, dv_decoder *decoder, size_t index) {
    dv_record record;
    size_t width, height;
    if (m->data->kind->fetch(m->data, m->split, index, &record, NULL) != DV_OK)
        return;
    if (dv_decoder_open(decoder, record.bytes, record.count, &width, &height, NULL) == DV_OK)
        (void)dv_decoder_drain(decoder, NULL);
    m->data->kind->release(m->data, &record);
}

static dv_status run_decoder(measurement *m, double *speed, dv_error *error) {
    size_t images = 0, all = m->data->shape.images[m->split], first = m->at;
    double start = now();
    dv_status status = DV_OK;
#pragma omp parallel num_threads(m->threads) reduction(+ : images)
    {
        dv_decoder *decoder;
        dv_error inner;
        if (dv_decoder_new(1, 1, &decoder, &inner) == DV_OK) {
            for (size_t i = (size_t)omp_get_thread_num(); now() - start < m->round; i += (size_t)m->threads, images++)
                decode(m, decoder, (first + i) % all);
            dv_decoder_free(decoder);
        } else {
#pragma omp critical(dv_speed_failure)
            status = inner.status;
        }
    }
    m->at = (first + images) % all;
    *speed = (double)images / (now() - start);
    return status == DV_OK ? DV_OK : dv_fail(error, status, "no memory to decode images: free some");
}

static dv_status run_rounds(measurement *m, dv_loader_speed *speed, dv_error *error) {
    double loader[ROUNDS], decoder[ROUNDS], ratio[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        DV_TRY(run_loader(m, &loader[i], error));
        decoder[i] = NAN;
        if (m->data->kind->fetch != NULL)
            DV_TRY(run_decoder(m, &decoder[i], error));
        ratio[i] = loader[i] / decoder[i];
    }
    *speed = (dv_loader_speed){.loader = median(loader), .decoder = median(decoder), .ratio = median(ratio)};
    return DV_OK;
}

dv_status dv_loader_measure(const dv_dataset *dataset, const dv_loader_options *options, double seconds,
                            dv_loader_speed *speed, dv_error *error) {
    DV_NEED(dataset);
    DV_NEED(options);
    DV_NEED(speed);
    measurement m = {.data = dataset, .batch = options->batch, .split = options->split, .round = seconds / ROUNDS / 2};
    DV_TRY(dv_loader_new(dataset, options, &m.loader, error));
    size_t side = options->side > 0 ? options->side : dataset->shape.side;
    m.prefetch = options->workers == 0 ? 0 : options->prefetch > 0 ? options->prefetch : 2;
    m.threads = options->workers > 0 ? (int)options->workers : omp_get_max_threads();
    m.images = malloc(options->batch * side * side * DV_DATA_CHANNELS * sizeof(float));
    m.labels = malloc(options->batch * sizeof *m.labels);
    dv_status status = DV_ERROR_MEMORY;
    if (m.images != NULL && m.labels != NULL)
        status = run_rounds(&m, speed, error);
    else
        dv_set_error(error, status, "no memory for a batch: use a smaller one");
    dv_loader_free(m.loader);
    free(m.images);
    free(m.labels);
    return status;
}
