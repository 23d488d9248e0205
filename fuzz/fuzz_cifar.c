/* Fuzzes the readers of CIFAR's files: the first byte says which file of which data set has the rest as its contents,
 * the others are good. What opens must give every image, with a label there is. */
#include <division/data.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { IMAGE = 3072, PATH = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[2][8] = {
    {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
     "test_batch.bin", "batches.meta.txt", NULL},
    {"train.bin", "test.bin", "fine_label_names.txt", NULL},
};

static char folder[PATH];

static void write_file(const char *name, const uint8_t *data, size_t size) {
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *stream = fopen(path, "wb");
    if (stream == NULL)
        return;
    fwrite(data, 1, size, stream);
    fclose(stream);
}

static void write_good(int hundred) {
    static const uint8_t record[IMAGE + 2];
    for (size_t i = 0; names[hundred][i] != NULL; i++)
        write_file(names[hundred][i], record, (size_t)(IMAGE + 1 + hundred));
}

static void remove_folder(void) {
    char path[2 * PATH];
    for (int set = 0; set < 2; set++)
        for (size_t i = 0; names[set][i] != NULL; i++) {
            snprintf(path, sizeof path, "%s/%s", folder, names[set][i]);
            unlink(path);
        }
    rmdir(folder);
}

static void make_folder(void) {
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.200s/division-fuzz-XXXXXX", parent != NULL ? parent : "/tmp");
    if (mkdtemp(folder) == NULL)
        exit(1);
    atexit(remove_folder);
    write_good(0);
    write_good(1);
}

static void read_all(const dv_dataset *data) {
    dv_dataset_shape shape = dv_dataset_describe(data);
    uint8_t image[IMAGE];
    int32_t label, alone;
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++)
        for (size_t i = 0; i < shape.images[split]; i++)
            if (dv_dataset_load(data, split, i, image, &label, NULL) != DV_OK || label < 0 ||
                (size_t)label >= shape.classes || dv_dataset_label(data, split, i, &alone, NULL) != DV_OK ||
                alone != label)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[2 * PATH];
    dv_dataset *set;
    dv_error error;
    if (size == 0)
        return 0;
    if (folder[0] == '\0')
        make_folder();
    int hundred = data[0] & 1;
    size_t count = hundred ? 3 : 7, index = data[0] / 2 % count;
    write_file(names[hundred][index], data + 1, size - 1);
    snprintf(text, sizeof text, "%s:%s", hundred ? "cifar100" : "cifar10", folder);
    if (dv_dataset_open(text, &set, &error) == DV_OK) {
        read_all(set);
        dv_dataset_close(set);
    }
    write_good(hundred);
    return 0;
}
