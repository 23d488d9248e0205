/* Published figures: what is reported in "DIVISION: Memory Efficient Training via Dual Activation Precision" (ICML
 * 2023), whose rows for ActNN, BLPA and AC-GC are its authors' own trainings. */
#include <division/tools/report.h>

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { METHODS = 5 };

static const char *const methods[METHODS] = {"none", "division", "actnn", "blpa", "acgc"};

static const struct {
    const char *model, *data;
    double top1[METHODS]; /* 0: not published */
} accuracies[] = {
    {"resnet18_cifar", "cifar10", {94.89, 94.72, 94.84, 0, 90.43}},
    {"resnet164_published", "cifar10", {94.90, 94.50, 0, 94.51, 0}},
    {"resnet164_published", "cifar100", {77.30, 76.90, 0, 76.42, 73.37}},
    {"densenet121_cifar", "cifar100", {79.75, 79.47, 78.95, 0, 0}},
    {"resnet50", "folder", {76.15, 75.86, 75.42, 0, 72.27}},
    {"resnet50", "lmdb", {76.15, 75.86, 75.42, 0, 72.27}},
    {"densenet161", "folder", {77.65, 77.58, 76.59, 0, 0}},
    {"densenet161", "lmdb", {77.65, 77.58, 76.59, 0, 0}},
};

/* In GiB, which the papers call GB, for a batch of 64 images of 224 x 224. */
enum { PUBLISHED_BATCH = 64 };
static const struct {
    const char *model;
    double gibibytes[METHODS];
} activations[] = {
    {"resnet50", {5.14, 0.49, 0.49, 0.82, 1.47}},
    {"wide_resnet50_2", {6.70, 0.64, 0, 0, 0}},
};

static double figure_of(const double figures[METHODS], const char *method) {
    for (int i = 0; i < METHODS; i++)
        if (strcmp(methods[i], method) == 0 && figures[i] > 0)
            return figures[i];
    return NAN;
}

double dv_published_accuracy(const char *model, const char *data, const char *method) {
    if (model == NULL || data == NULL || method == NULL)
        return NAN;
    for (size_t i = 0; i < sizeof accuracies / sizeof *accuracies; i++)
        if (strcmp(accuracies[i].model, model) == 0 && strlen(accuracies[i].data) == strcspn(data, ":") &&
            strncmp(accuracies[i].data, data, strcspn(data, ":")) == 0)
            return figure_of(accuracies[i].top1, method);
    return NAN;
}

double dv_published_bytes(const char *model, double batch, const char *method) {
    if (model == NULL || method == NULL)
        return NAN;
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcmp(activations[i].model, model) == 0 && batch == PUBLISHED_BATCH)
            return figure_of(activations[i].gibibytes, method) * 1073741824;
    return NAN;
}
