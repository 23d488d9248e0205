/* CIFAR-10 and CIFAR-100 in their binary form: files of records, each the label (CIFAR-100: coarse, then fine)
 * and the red, the green and the blue plane of an image of 32 x 32.
 *
 * Every record's label is looked at when the data set is opened, so that a wrong file is found before training.
 * Images are then read one by one where they are needed: the system keeps the files in its cache, and the process
 * does not grow by them. */
#include "base/file.h"
#include "base/status.h"
#include "data/augmentation.h"
#include "data/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SIDE = 32,
    PLANE = SIDE * SIDE,
    MOST_LABELS = 2,
    MOST_RECORD = MOST_LABELS + DV_DATA_CHANNELS * PLANE,
    MOST_FILES = 5, /* of a split */
    CHECK_AT_ONCE = 256,
    PATH_BYTES = 4096
};

/* What distinguishes the two. */
typedef struct form {
    const dv_dataset_kind *kind;
    const char *folder; /* what the archive unpacks to */
    const char *files[DV_SPLIT_COUNT][MOST_FILES];
    size_t published[DV_SPLIT_COUNT]; /* images */
    size_t labels;                    /* bytes of a record before the image; the last one counts */
    size_t classes;                   /* of the one that counts */
    const char *names;                /* a file with a name of a class in each line */
    const char *published_names;      /* what that file has, for folders without it */
    dv_image_normalisation normalisation;
} form;

typedef struct source {
    int descriptor; /* -1: there is none */
    char *path;
} source;

typedef struct cifar {
    dv_dataset base;
    const form *of;
    source sources[DV_SPLIT_COUNT][MOST_FILES];
    size_t per_file[DV_SPLIT_COUNT]; /* records; all files of a split have as many */
    char *names;                     /* the text that the names of classes are in; NULL: there is none */
} cifar;

/* ---- records ------------------------------------------------------------------------------- */

static size_t record_bytes(const form *of) {
    return of->labels + (size_t)DV_DATA_CHANNELS * PLANE;
}

/* Reads `bytes` of a file from `offset` on. */
static dv_status read_at(const source *from, size_t offset, uint8_t *data, size_t bytes, dv_error *error) {
    int code = dv_file_read_at(from->descriptor, data, bytes, offset);
    if (code == 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_IO, "could not read %s: %s: check the file and the device",
                   dv_file_shown(from->path), code != ENODATA ? strerror(code) : "it became shorter");
}

/* The label of the record `number` of a file. */
static dv_status read_label(const cifar *data, const source *from, size_t number, const uint8_t *record, int32_t *label,
                            dv_error *error) {
    *label = record[data->of->labels - 1];
    if ((size_t)*label < data->of->classes)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT, "%s: record %zu: label %d: there are %zu classes: is it a file of %s?",
                   dv_file_shown(from->path), number, (int)*label, data->of->classes, data->of->kind->name);
}

/* Turns planes [3][32][32] into pixels [32][32][3]. */
static void interleave(const uint8_t *planes, uint8_t *image) {
    for (size_t i = 0; i < PLANE; i++)
        for (size_t channel = 0; channel < DV_DATA_CHANNELS; channel++)
            image[i * DV_DATA_CHANNELS + channel] = planes[channel * PLANE + i];
}

static dv_status load(const dv_dataset *dataset, dv_split split, size_t index, uint8_t *image, int32_t *label,
                      dv_error *error) {
    const cifar *data = (const cifar *)dataset;
    uint8_t record[MOST_RECORD];
    size_t bytes = record_bytes(data->of), number = index % data->per_file[split];
    const source *from = &data->sources[split][index / data->per_file[split]];
    DV_TRY(read_at(from, number * bytes, record, bytes, error));
    DV_TRY(read_label(data, from, number, record, label, error));
    interleave(record + data->of->labels, image);
    return DV_OK;
}

static dv_status find_label(const dv_dataset *dataset, dv_split split, size_t index, int32_t *label, dv_error *error) {
    const cifar *data = (const cifar *)dataset;
    uint8_t labels[MOST_LABELS];
    size_t number = index % data->per_file[split];
    const source *from = &data->sources[split][index / data->per_file[split]];
    DV_TRY(read_at(from, number * record_bytes(data->of), labels, data->of->labels, error));
    return read_label(data, from, number, labels, label, error);
}

/* ---- opening ------------------------------------------------------------------------------- */

static void close_cifar(dv_dataset *dataset) {
    cifar *data = (cifar *)dataset;
    free(data->base.class_names);
    free(data->names);
    for (size_t split = 0; split < DV_SPLIT_COUNT; split++)
        for (size_t i = 0; i < MOST_FILES; i++) {
            if (data->sources[split][i].descriptor >= 0)
                close(data->sources[split][i].descriptor);
            free(data->sources[split][i].path);
        }
    free(data);
}

/* The folder with the files: the given one, or the one in it that the archive unpacks to. */
static void find_folder(const form *of, const char *given, char path[PATH_BYTES]) {
    snprintf(path, PATH_BYTES, "%s/%s/%s", given, of->folder, of->files[DV_TEST][0]);
    if (access(path, F_OK) == 0)
        snprintf(path, PATH_BYTES, "%s/%s", given, of->folder);
    else
        snprintf(path, PATH_BYTES, "%s", given);
}

static dv_status open_source(const form *of, const char *folder, const char *name, source *made, dv_error *error) {
    size_t bytes = strlen(folder) + strlen(name) + 2;
    made->path = malloc(bytes);
    if (made->path == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a data set: free some");
    snprintf(made->path, bytes, "%s/%s", folder, name);
    made->descriptor = open(made->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait */
    if (made->descriptor >= 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_IO,
                   "could not read %s: %s: give the folder with the binary version of %s, or fetch it: 'division data "
                   "fetch %s %s'",
                   dv_file_shown(made->path), strerror(errno), of->kind->name, of->kind->name, dv_file_shown(folder));
}

/* Records of a file, which must be whole. */
static dv_status count_records(const form *of, const source *from, size_t *count, dv_error *error) {
    struct stat status;
    size_t record = record_bytes(of);
    if (fstat(from->descriptor, &status) != 0 || !S_ISREG(status.st_mode))
        return dv_fail(error, DV_ERROR_FORMAT, "%s is no regular file: check the folder", dv_file_shown(from->path));
    size_t bytes = (size_t)status.st_size;
    *count = bytes / record;
    if (bytes > 0 && bytes % record == 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT,
                   "%s has %zu bytes, not a whole number of records of %zu: is it complete, and of %s?",
                   dv_file_shown(from->path), bytes, record, of->kind->name);
}

/* Looks at the labels of all records of a file. */
static dv_status check_labels(const cifar *data, const source *from, size_t count, dv_error *error) {
    size_t record = record_bytes(data->of);
    int32_t label;
    dv_status status = DV_OK;
    uint8_t *some = malloc(record * CHECK_AT_ONCE);
    if (some == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to check %s: free some", dv_file_shown(from->path));
    for (size_t first = 0; first < count && status == DV_OK; first += CHECK_AT_ONCE) {
        size_t number = count - first < CHECK_AT_ONCE ? count - first : CHECK_AT_ONCE;
        status = read_at(from, first * record, some, number * record, error);
        for (size_t i = 0; i < number && status == DV_OK; i++)
            status = read_label(data, from, first + i, some + i * record, &label, error);
    }
    free(some);
    return status;
}

/* Opens and checks one file of a split. The first says how many records each has: one that was cut short at a
 * record's end differs from the others. */
static dv_status add_file(cifar *data, const char *folder, dv_split split, size_t index, dv_error *error) {
    size_t count;
    source *made = &data->sources[split][index];
    DV_TRY(open_source(data->of, folder, data->of->files[split][index], made, error));
    DV_TRY(count_records(data->of, made, &count, error));
    if (index == 0)
        data->per_file[split] = count;
    if (count != data->per_file[split])
        return dv_fail(error, DV_ERROR_FORMAT, "%s has %zu records and %s has %zu: one of them is not complete",
                       dv_file_shown(made->path), count, data->of->files[split][0], data->per_file[split]);
    DV_TRY(check_labels(data, made, count, error));
    data->base.shape.images[split] += count;
    return DV_OK;
}

/* Files of a split that has only one can be cut short at a record's end and look whole. With all the published training
 * images the test images are the published ones too; a set with fewer of the former is someone's choice. */
static dv_status check_test_images(const cifar *data, dv_error *error) {
    const size_t *images = data->base.shape.images, *published = data->of->published;
    if (images[DV_TRAIN] != published[DV_TRAIN] || images[DV_TEST] == published[DV_TEST])
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT, "%s has %zu images, and that of %s %zu: it is not complete: fetch it again",
                   dv_file_shown(data->sources[DV_TEST][0].path), images[DV_TEST], data->of->kind->name,
                   published[DV_TEST]);
}

static dv_status add_files(cifar *data, const char *folder, dv_error *error) {
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++)
        for (size_t i = 0; i < MOST_FILES && data->of->files[split][i] != NULL; i++)
            DV_TRY(add_file(data, folder, split, i, error));
    return check_test_images(data, error);
}

/* Cuts a text of lines into names of classes. False: it has too few. */
static bool take_names(cifar *data, char *text) {
    size_t count = 0, classes = data->of->classes;
    char *rest, **names = calloc(classes, sizeof *names);
    for (char *line = strtok_r(text, "\r\n", &rest); names != NULL && line != NULL && count < classes;
         line = strtok_r(NULL, "\r\n", &rest))
        names[count++] = line;
    if (names == NULL || count < classes) {
        free(names);
        return false;
    }
    data->names = text;
    data->base.class_names = names;
    return true;
}

/* Reads the names of the classes, if their file is there and has one for each; else they are the published ones. */
static void read_names(cifar *data, const char *folder) {
    enum { MOST_BYTES = 1 << 16 };
    char path[PATH_BYTES + 32];
    size_t bytes;
    void *text;
    snprintf(path, sizeof path, "%s/%s", folder, data->of->names);
    if (dv_file_read(path, MOST_BYTES, &text, &bytes, NULL) == DV_OK && !take_names(data, text))
        free(text);
    if (data->names != NULL)
        return;
    text = strdup(data->of->published_names);
    if (text != NULL && !take_names(data, text))
        free(text);
}

static cifar *new_cifar(const form *of) {
    cifar *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->of = of;
    made->base = (dv_dataset){.kind = of->kind, .shape = {.classes = of->classes, .side = SIDE}};
    made->base.usual = dv_augmentation_default(DV_CROP_ZERO);
    made->base.normalisation = of->normalisation;
    for (size_t split = 0; split < DV_SPLIT_COUNT; split++)
        for (size_t i = 0; i < MOST_FILES; i++)
            made->sources[split][i].descriptor = -1;
    return made;
}

static dv_status open_form(const form *of, const char *text, dv_dataset **dataset, dv_error *error) {
    char folder[PATH_BYTES];
    if (text == NULL || *text == '\0' || strlen(text) > PATH_BYTES / 2)
        return dv_fail(error, DV_ERROR_OPTION, "data: %s: give the folder of its files: %s", of->kind->name,
                       of->kind->usage);
    cifar *made = new_cifar(of);
    if (made == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a data set: free some");
    find_folder(of, text, folder);
    dv_status status = add_files(made, folder, error);
    read_names(made, folder);
    if (status == DV_OK)
        *dataset = &made->base;
    else
        close_cifar(&made->base);
    return status;
}

/* ---- the two ------------------------------------------------------------------------------- */

/* Means and deviations are those of all pixels of the training images. */
static const form cifar10 = {
    .kind = &dv_cifar10,
    .folder = "cifar-10-batches-bin",
    .files = {[DV_TRAIN] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                            "data_batch_5.bin"},
              [DV_TEST] = {"test_batch.bin"}},
    .published = {[DV_TRAIN] = 50000, [DV_TEST] = 10000},
    .labels = 1,
    .classes = 10,
    .names = "batches.meta.txt",
    .published_names = "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck",
    .normalisation = {.mean = {0.4914, 0.4822, 0.4465}, .deviation = {0.2470, 0.2435, 0.2616}},
};

static const form cifar100 = {
    .kind = &dv_cifar100,
    .folder = "cifar-100-binary",
    .files = {[DV_TRAIN] = {"train.bin"}, [DV_TEST] = {"test.bin"}},
    .published = {[DV_TRAIN] = 50000, [DV_TEST] = 10000},
    .labels = 2,
    .classes = 100,
    .names = "fine_label_names.txt",
    .published_names = "apple\naquarium_fish\nbaby\nbear\nbeaver\nbed\nbee\nbeetle\nbicycle\nbottle\nbowl\nboy\n"
                       "bridge\nbus\nbutterfly\ncamel\ncan\ncastle\ncaterpillar\ncattle\nchair\nchimpanzee\n"
                       "clock\ncloud\ncockroach\ncouch\ncrab\ncrocodile\ncup\ndinosaur\ndolphin\nelephant\n"
                       "flatfish\nforest\nfox\ngirl\nhamster\nhouse\nkangaroo\nkeyboard\nlamp\nlawn_mower\n"
                       "leopard\nlion\nlizard\nlobster\nman\nmaple_tree\nmotorcycle\nmountain\nmouse\nmushroom\n"
                       "oak_tree\norange\norchid\notter\npalm_tree\npear\npickup_truck\npine_tree\nplain\n"
                       "plate\npoppy\nporcupine\npossum\nrabbit\nraccoon\nray\nroad\nrocket\nrose\nsea\nseal\n"
                       "shark\nshrew\nskunk\nskyscraper\nsnail\nsnake\nspider\nsquirrel\nstreetcar\nsunflower\n"
                       "sweet_pepper\ntable\ntank\ntelephone\ntelevision\ntiger\ntractor\ntrain\ntrout\ntulip\n"
                       "turtle\nwardrobe\nwhale\nwillow_tree\nwolf\nwoman\nworm",
    .normalisation = {.mean = {0.5071, 0.4865, 0.4409}, .deviation = {0.2673, 0.2564, 0.2762}},
};

static dv_status open_cifar10(const char *text, const dv_dataset_options *options, dv_dataset **dataset,
                              dv_error *error) {
    (void)options;
    return open_form(&cifar10, text, dataset, error);
}

static dv_status open_cifar100(const char *text, const dv_dataset_options *options, dv_dataset **dataset,
                               dv_error *error) {
    (void)options;
    return open_form(&cifar100, text, dataset, error);
}

const dv_dataset_kind dv_cifar10 = {
    .name = "cifar10",
    .usage = "cifar10:DIR",
    .help = "CIFAR-10: data_batch_1.bin to data_batch_5.bin and test_batch.bin in the folder",
    .open = open_cifar10,
    .close = close_cifar,
    .load = load,
    .label = find_label,
};

const dv_dataset_kind dv_cifar100 = {
    .name = "cifar100",
    .usage = "cifar100:DIR",
    .help = "CIFAR-100, its hundred fine classes: train.bin and test.bin in the folder",
    .open = open_cifar100,
    .close = close_cifar,
    .load = load,
    .label = find_label,
};
