/* Image folders: DIR/train/CLASS/FILE and DIR/val/CLASS/FILE, as ImageNet comes. Classes are numbered in the order of
 * their names, those of train/; files are taken in the order of theirs. Names are compared byte by byte, so that the
 * order is the same in any language. Files whose names do not end as those of images do are left alone, and counted.
 * Where there is no val/, or classes stand in DIR itself, a share of each class is held out to test with. */
#include "data/folder_images.h"

#include "base/file.h"
#include "base/status.h"
#include "data/augmentation.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096, NAME_BYTES = 256, MOST_FILE = 1 << 28, MOST_ENDINGS = 8, ENDING_BYTES = 12 };

/* The files of a split: class after class, their names in one block. */
typedef struct listing {
    size_t count, room;
    size_t *names; /* [count]: where in the block each begins */
    char *block;
    size_t block_used, block_room;
    size_t *first; /* [classes + 1]: of the class */
} listing;

/* Files of an ending that is none of an image. */
typedef struct unread {
    char ending[ENDING_BYTES];
    size_t count;
} unread;

typedef struct folder {
    dv_dataset base;
    char *root;
    const char *places[DV_SPLIT_COUNT]; /* folders of the splits in it */
    unread unread[MOST_ENDINGS];
    listing splits[DV_SPLIT_COUNT];
} folder;

#define HERE "." /* the place of both splits where classes stand in the folder itself */

static const char *const split_names[DV_SPLIT_COUNT] = {[DV_TRAIN] = "train", [DV_TEST] = "val"};

static dv_status fail_memory(dv_error *error) {
    return dv_fail(error, DV_ERROR_MEMORY, "no memory for a list of images: free some");
}

/* ---- folders ------------------------------------------------------------------------------- */

static bool ends_like_an_image(const char *name) {
    static const char *const endings[] = {".jpg", ".jpeg", ".jpe", ".png", ".webp"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcasecmp(name + length - ending, endings[i]) == 0)
            return true;
    }
    return false;
}

int dv_image_is_named(const char *name) {
    return name != NULL && ends_like_an_image(name);
}

static int is_shown(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int compare(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void free_entries(struct dirent **entries, int count) {
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

static dv_status list(const char *path, int (*filter)(const struct dirent *), struct dirent ***entries, int *count,
                      dv_error *error) {
    *count = scandir(path, entries, filter, compare);
    if (*count >= 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_IO,
                   "could not read the folder %s: %s: images are to be in CLASS/, or in train/CLASS/ and val/CLASS/",
                   dv_file_shown(path), strerror(errno));
}

/* Or a link to one. The file is asked only where the entry does not say what it is: there are a million of them. */
static bool is_folder(const char *parent, const struct dirent *entry) {
    char path[PATH_BYTES + NAME_BYTES];
    struct stat status;
    if (entry->d_type == DT_REG || entry->d_type == DT_DIR)
        return entry->d_type == DT_DIR;
    snprintf(path, sizeof path, "%s/%s", parent, entry->d_name);
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* ---- listing ------------------------------------------------------------------------------- */

/* An array that has room for one more: doubled where it has not. */
static void *grow(void *array, size_t *room, size_t needed, size_t size) {
    size_t larger = *room > 0 ? *room : 1024;
    if (needed <= *room)
        return array;
    while (larger < needed)
        larger *= 2;
    void *made = realloc(array, larger * size);
    if (made != NULL)
        *room = larger;
    return made;
}

static void free_listing(listing *files) {
    free(files->names);
    free(files->block);
    free(files->first);
}

static dv_status add_name(listing *to, const char *name, dv_error *error) {
    size_t bytes = strlen(name) + 1;
    size_t *names = grow(to->names, &to->room, to->count + 1, sizeof *names);
    if (names == NULL)
        return fail_memory(error);
    to->names = names;
    char *block = grow(to->block, &to->block_room, to->block_used + bytes, 1);
    if (block == NULL)
        return fail_memory(error);
    to->block = block;
    memcpy(block + to->block_used, name, bytes);
    names[to->count++] = to->block_used;
    to->block_used += bytes;
    return DV_OK;
}

/* Counts a file that is not read; kinds past the last that there is room for are counted with that. */
static void count_unread(folder *data, const char *name) {
    const char *dot = strrchr(name, '.');
    char ending[ENDING_BYTES] = "(no ending)";
    if (dot != NULL && strlen(dot) < sizeof ending)
        strcpy(ending, dot);
    size_t i = 0;
    while (i + 1 < MOST_ENDINGS && data->unread[i].count > 0 && strcasecmp(data->unread[i].ending, ending) != 0)
        i++;
    if (data->unread[i].count++ == 0)
        strcpy(data->unread[i].ending, i + 1 < MOST_ENDINGS ? ending : "others");
}

static void describe_unread(folder *data) {
    size_t used = 0;
    for (size_t i = 0; i < MOST_ENDINGS && data->unread[i].count > 0 && used < DV_UNREAD_BYTES; i++)
        used += (size_t)snprintf(data->base.unread + used, DV_UNREAD_BYTES - used, "%s%zu %s", i > 0 ? ", " : "",
                                 data->unread[i].count, data->unread[i].ending);
}

static dv_status add_file(folder *data, listing *to, const char *name, dv_error *error) {
    if (ends_like_an_image(name))
        return add_name(to, name, error);
    count_unread(data, name);
    return DV_OK;
}

/* Adds the images of a class; folders are none, whatever their names. Classes of the test may have none. */
static dv_status add_class(folder *data, dv_split split, size_t label, dv_error *error) {
    char path[PATH_BYTES];
    struct dirent **entries;
    int count;
    listing *to = &data->splits[split];
    to->first[label] = to->count;
    snprintf(path, sizeof path, "%s/%s/%s", data->root, data->places[split], data->base.class_names[label]);
    struct stat status;
    if (split == DV_TEST && stat(path, &status) != 0 && errno == ENOENT)
        return DV_OK;
    DV_TRY(list(path, is_shown, &entries, &count, error));
    dv_status result = DV_OK;
    for (int i = 0; i < count && result == DV_OK; i++)
        if (!is_folder(path, entries[i]))
            result = add_file(data, to, entries[i]->d_name, error);
    free_entries(entries, count);
    if (result == DV_OK && to->count == to->first[label] && split == DV_TRAIN)
        return dv_fail(error, DV_ERROR_FORMAT,
                       "%s has no images (.jpg, .jpeg, .png, .webp): remove the folder or fill it",
                       dv_file_shown(path));
    return result;
}

/* Takes the folders of train/ as the classes. */
static dv_status name_classes(folder *data, const char *path, struct dirent **entries, int count, dv_error *error) {
    data->base.class_names = calloc((size_t)count + 1, sizeof *data->base.class_names);
    if (data->base.class_names == NULL)
        return fail_memory(error);
    for (int i = 0; i < count; i++) {
        if (!is_folder(path, entries[i]))
            continue;
        char *name = strdup(entries[i]->d_name);
        if (name == NULL)
            return fail_memory(error);
        data->base.class_names[data->base.shape.classes++] = name;
    }
    if (data->base.shape.classes > 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT, "%s has no folders: each class is to have one", dv_file_shown(path));
}

static dv_status find_classes(folder *data, dv_error *error) {
    char path[PATH_BYTES];
    struct dirent **entries;
    int count;
    snprintf(path, sizeof path, "%s/%s", data->root, data->places[DV_TRAIN]);
    DV_TRY(list(path, is_shown, &entries, &count, error));
    dv_status status = name_classes(data, path, entries, count, error);
    free_entries(entries, count);
    return status;
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each folder of val/ must be a class. */
static dv_status check_test_classes(const folder *data, dv_error *error) {
    char path[PATH_BYTES];
    struct dirent **entries;
    int count;
    dv_status status = DV_OK;
    snprintf(path, sizeof path, "%s/%s", data->root, split_names[DV_TEST]);
    DV_TRY(list(path, is_shown, &entries, &count, error));
    for (int i = 0; i < count && status == DV_OK; i++) {
        const char *name = entries[i]->d_name;
        if (is_folder(path, entries[i]) &&
            bsearch(&name, data->base.class_names, data->base.shape.classes, sizeof(char *), compare_names) == NULL)
            status = dv_fail(error, DV_ERROR_FORMAT, "%s/%.80s is no class: train has no such folder",
                             dv_file_shown(path), name);
    }
    free_entries(entries, count);
    return status;
}

static dv_status find_files(folder *data, dv_split split, dv_error *error) {
    listing *to = &data->splits[split];
    size_t classes = data->base.shape.classes;
    to->first = calloc(classes + 1, sizeof *to->first);
    if (to->first == NULL)
        return fail_memory(error);
    for (size_t label = 0; label < classes; label++)
        DV_TRY(add_class(data, split, label, error));
    to->first[classes] = data->base.shape.images[split] = to->count;
    if (to->count > 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT, "%s/%s has no images in folders of classes: put them into %s/CLASS/",
                   dv_file_shown(data->root), split_names[split], split_names[split]);
}

/* ---- the data set -------------------------------------------------------------------------- */

/* The class that an image is in: the last that begins at or before it. */
static size_t find_class(const folder *data, dv_split split, size_t index) {
    const size_t *first = data->splits[split].first;
    size_t low = 0, high = data->base.shape.classes;
    while (high - low > 1) {
        size_t between = low + (high - low) / 2;
        if (first[between] <= index)
            low = between;
        else
            high = between;
    }
    return low;
}

const char *dv_folder_split_name(dv_split split) {
    return split_names[split];
}

void dv_folder_image_path(const dv_dataset *dataset, dv_split split, size_t index, char *name, size_t bytes) {
    const folder *data = (const folder *)dataset;
    const listing *from = &data->splits[split];
    snprintf(name, bytes, "%s/%s", data->base.class_names[find_class(data, split, index)],
             from->block + from->names[index]);
}

static void name_image(const dv_dataset *dataset, dv_split split, size_t index, char name[DV_IMAGE_NAME_BYTES]) {
    const char *place = ((const folder *)dataset)->places[split];
    size_t used = strcmp(place, HERE) != 0 ? (size_t)snprintf(name, DV_IMAGE_NAME_BYTES, "%s/", place) : 0;
    dv_folder_image_path(dataset, split, index, name + used, DV_IMAGE_NAME_BYTES - used);
}

static dv_status find_label(const dv_dataset *dataset, dv_split split, size_t index, int32_t *label, dv_error *error) {
    (void)error;
    *label = (int32_t)find_class((const folder *)dataset, split, index);
    return DV_OK;
}

static dv_status fetch(const dv_dataset *dataset, dv_split split, size_t index, dv_record *record, dv_error *error) {
    const folder *data = (const folder *)dataset;
    char path[PATH_BYTES + 2 * NAME_BYTES], name[2 * NAME_BYTES];
    dv_folder_image_path(dataset, split, index, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s/%s", data->root, data->places[split], name);
    record->label = (int32_t)find_class(data, split, index);
    DV_TRY(dv_file_read(path, MOST_FILE, &record->held, &record->count, error));
    record->bytes = record->held;
    return DV_OK;
}

static void release(const dv_dataset *dataset, dv_record *record) {
    (void)dataset;
    free(record->held);
}

static void close_folder(dv_dataset *dataset) {
    folder *data = (folder *)dataset;
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++)
        free_listing(&data->splits[split]);
    for (size_t i = 0; i < data->base.shape.classes; i++)
        free(data->base.class_names[i]);
    free(data->base.class_names);
    free(data->root);
    free(data);
}

/* ---- images that are held out --------------------------------------------------------------- */

/* Of the path and the seed: FNV-1a, and the bits mixed once more. */
static uint64_t hash_path(uint64_t seed, const char *class_name, const char *file) {
    uint64_t hash = 14695981039346656037u ^ seed * 0x9e3779b97f4a7c15u;
    const char *const parts[] = {class_name, "/", file};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *at = parts[i]; *at != '\0'; at++)
            hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return hash ^ hash >> 31;
}

static int compare_hashes(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Images of a class that are held out: a share, but one at least, and not all. */
static size_t count_held_out(size_t images, double share) {
    size_t held = (size_t)((double)images * share + 0.5);
    held = held > 0 ? held : 1;
    return held < images ? held : images - 1;
}

/* Parts the images of a class: those of the smallest hashes are held out. `hashes` has room for two of each. */
static dv_status part_class(const folder *data, const dv_dataset_options *options, size_t label, uint64_t *hashes,
                            listing made[DV_SPLIT_COUNT], dv_error *error) {
    const listing *from = &data->splits[DV_TRAIN];
    size_t first = from->first[label], count = from->first[label + 1] - first;
    size_t held = count_held_out(count, options->hold_out);
    uint64_t *sorted = hashes + count;
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++)
        made[split].first[label] = made[split].count;
    for (size_t i = 0; i < count; i++)
        sorted[i] = hashes[i] =
            hash_path(options->seed, data->base.class_names[label], from->block + from->names[first + i]);
    qsort(sorted, count, sizeof *sorted, compare_hashes);
    for (size_t i = 0; i < count; i++) {
        dv_split split = held > 0 && hashes[i] <= sorted[held - 1] ? DV_TEST : DV_TRAIN;
        DV_TRY(add_name(&made[split], from->block + from->names[first + i], error));
    }
    return DV_OK;
}

static dv_status part_classes(const folder *data, const dv_dataset_options *options, listing made[DV_SPLIT_COUNT],
                              dv_error *error) {
    size_t classes = data->base.shape.classes;
    uint64_t *hashes = malloc(2 * data->splits[DV_TRAIN].count * sizeof *hashes);
    dv_status status = hashes != NULL ? DV_OK : fail_memory(error);
    for (dv_split split = 0; split < DV_SPLIT_COUNT && status == DV_OK; split++) {
        made[split].first = calloc(classes + 1, sizeof *made[split].first);
        status = made[split].first != NULL ? DV_OK : fail_memory(error);
    }
    for (size_t label = 0; label < classes && status == DV_OK; label++)
        status = part_class(data, options, label, hashes, made, error);
    free(hashes);
    return status;
}

/* Takes images to test with out of those to learn from. */
static dv_status hold_out(folder *data, const dv_dataset_options *options, dv_error *error) {
    listing made[DV_SPLIT_COUNT] = {{0}};
    dv_status status = part_classes(data, options, made, error);
    if (status == DV_OK && made[DV_TEST].count == 0)
        status = dv_fail(error, DV_ERROR_FORMAT, "%s has one image of each class: there is none to test with: add some",
                         dv_file_shown(data->root));
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++) {
        if (status != DV_OK) {
            free_listing(&made[split]);
            continue;
        }
        free_listing(&data->splits[split]);
        data->splits[split] = made[split];
        made[split].first[data->base.shape.classes] = data->base.shape.images[split] = made[split].count;
    }
    data->base.shape.held_out = status == DV_OK ? made[DV_TEST].count : 0;
    return status;
}

/* ---- opening ------------------------------------------------------------------------------- */

static bool has_folder(const char *root, const char *name) {
    char path[PATH_BYTES];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", root, name);
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool has_folders(const char *root) {
    struct dirent **entries;
    int count;
    bool found = false;
    if (list(root, is_shown, &entries, &count, NULL) != DV_OK)
        return false;
    for (int i = 0; i < count && !found; i++)
        found = is_folder(root, entries[i]);
    free_entries(entries, count);
    return found;
}

/* Where the splits are. Returns true if images to test with are to be held out. */
static bool find_places(folder *data, const dv_dataset_options *options) {
    bool train = has_folder(data->root, split_names[DV_TRAIN]), test = has_folder(data->root, split_names[DV_TEST]);
    bool flat = !train && !test && has_folders(data->root), held = options->hold_out > 0 && !test && (train || flat);
    data->places[DV_TRAIN] = held && flat ? HERE : split_names[DV_TRAIN];
    data->places[DV_TEST] = held ? data->places[DV_TRAIN] : split_names[DV_TEST];
    return held;
}

/* Says what is wrong with a folder that has neither classes nor splits. */
static dv_status check_root(const folder *data, dv_error *error) {
    struct dirent **entries;
    int count;
    DV_TRY(list(data->root, is_shown, &entries, &count, error));
    free_entries(entries, count);
    if (has_folders(data->root))
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT,
                   "%s has no folders: put the images of each class into one of their own, %s/CLASS/",
                   dv_file_shown(data->root), dv_file_shown(data->root));
}

static dv_status fill(folder *data, const dv_dataset_options *options, dv_error *error) {
    bool held = find_places(data, options);
    DV_TRY(check_root(data, error));
    DV_TRY(find_classes(data, error));
    if (!held)
        DV_TRY(check_test_classes(data, error));
    DV_TRY(find_files(data, DV_TRAIN, error));
    DV_TRY(held ? hold_out(data, options, error) : find_files(data, DV_TEST, error));
    describe_unread(data);
    return DV_OK;
}

static dv_status open_folder(const char *text, const dv_dataset_options *options, dv_dataset **dataset,
                             dv_error *error) {
    if (text == NULL || *text == '\0' || strlen(text) > PATH_BYTES - 2 * NAME_BYTES)
        return dv_fail(error, DV_ERROR_OPTION, "data: folder: give the folder with train/ and val/: folder:DIR");
    if (!(options->hold_out >= 0 && options->hold_out <= 0.9))
        return dv_fail(error, DV_ERROR_OPTION, "hold-out: %g: must be from 0 to 0.9", options->hold_out);
    folder *made = calloc(1, sizeof *made);
    if (made == NULL)
        return fail_memory(error);
    made->base = (dv_dataset){.kind = &dv_folder_images,
                              .shape = {.side = DV_PHOTOGRAPH_SIDE},
                              .normalisation = DV_PHOTOGRAPHS,
                              .usual = dv_augmentation_default(DV_CROP_RESIZED)};
    made->root = strdup(text);
    dv_status status = made->root != NULL ? fill(made, options, error) : fail_memory(error);
    if (status == DV_OK)
        *dataset = &made->base;
    else
        close_folder(&made->base);
    return status;
}

const dv_dataset_kind dv_folder_images = {
    .name = "folder",
    .usage = "folder:DIR",
    .help =
        "JPEG, PNG and WebP files in train/CLASS/ and val/CLASS/ of the folder; without val/, or in CLASS/, some are "
        "held out",
    .open = open_folder,
    .close = close_folder,
    .fetch = fetch,
    .release = release,
    .name_image = name_image,
    .label = find_label,
};
