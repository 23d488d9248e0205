/* Choosing the number of workers from times. */
#include "train/workers.h"

#include <math.h>
#include <stdlib.h>

static const double WORTH_WHILE = 0.02; /* of the time of a batch with its step */

/* Batches that do not count: the first of all maps memory and fills caches; the first with workers are waited for. */
enum { UNTIMED = 2 };

dv_worker_trial dv_worker_trial_new(size_t most, size_t threads) {
    return (dv_worker_trial){.most = most, .threads = threads, .settled = most == 0};
}

size_t dv_workers_worth_trying(double made, double step, size_t threads, size_t most) {
    if (most == 0 || made < WORTH_WHILE * (made + step))
        return 0;
    double wanted = ceil(made * (double)threads / step);
    if (!(wanted < (double)most)) /* also of a step that took no time */
        return most;
    return wanted > 1 ? (size_t)wanted : 1;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Robust against a batch that something else slowed down. `times` is sorted. */
static double median(double times[DV_TRIAL_BATCHES]) {
    qsort(times, DV_TRIAL_BATCHES, sizeof *times, compare);
    return times[DV_TRIAL_BATCHES / 2];
}

static void go_on_with(dv_worker_trial *trial, size_t workers, bool settled) {
    trial->workers = workers;
    trial->settled = settled;
    trial->seen = 0;
}

/* All batches are there of one number of workers. */
static void judge(dv_worker_trial *trial) {
    double made = median(trial->made), whole = median(trial->whole);
    if (trial->workers == 0) {
        size_t worth = dv_workers_worth_trying(made, whole - made, trial->threads, trial->most);
        trial->without = whole;
        go_on_with(trial, worth, worth == 0);
        return;
    }
    go_on_with(trial, whole < (1 - WORTH_WHILE) * trial->without ? trial->workers : 0, true);
}

void dv_worker_trial_note(dv_worker_trial *trial, double made, double whole) {
    if (trial->settled)
        return;
    if (trial->seen >= UNTIMED) {
        trial->made[trial->seen - UNTIMED] = made;
        trial->whole[trial->seen - UNTIMED] = whole;
    }
    if (++trial->seen == UNTIMED + DV_TRIAL_BATCHES)
        judge(trial);
}
