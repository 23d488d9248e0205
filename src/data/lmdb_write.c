/* From an image folder to LMDB files.
 *
 * Records are written in their order, a few dozen in a transaction, which is on the disk as a whole or not at all. So
 * whatever ends the conversion, the file has the first so many records, and the next call goes on behind them. Which
 * image is at which place is given by the number of images alone. Threads read, and resize, the images of a
 * transaction; then one writes them. */
#include "base/file.h"
#include "base/printable.h"
#include "base/status.h"
#include "data/folder_images.h"
#include "data/image.h"
#include "data/lmdb_file.h"
#include "data/lmdb_pages.h"
#include "data/lmdb_progress.h"
#include "data/lmdb_verify.h"

#include <division/tools/lmdb.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

enum { AT_ONCE = 64, FIRST_MAP = 1 << 28 };

/* An image on its way into a record. */
typedef struct item {
    char name[DV_LMDB_MAX_NAME];
    int32_t label;
    uint8_t *bytes; /* owned */
    size_t count;
    bool resized;
    dv_error damage; /* why it could not be decoded, unless its status is DV_OK */
    dv_error error;  /* why there is none, unless its status is DV_OK */
} item;

/* One split on its way. */
typedef struct writer {
    const dv_dataset *source;
    dv_split split;
    const dv_lmdb_options *options;
    dv_lmdb_description description; /* class_names are the source's */
    dv_order order;
    char *path;
    int lock; /* a descriptor; -1: none */
    MDB_env *environment;
    MDB_dbi table;
    size_t done; /* records that are in the file */
    item *items; /* [AT_ONCE] */
} writer;

/* All of it. */
typedef struct conversion {
    const dv_lmdb_callbacks *callbacks;
    dv_lmdb_result *result;
    struct timespec start;
    size_t all_images, before; /* done in splits before this one */
} conversion;

/* ---- options ------------------------------------------------------------------------------- */

dv_lmdb_options dv_lmdb_options_default(void) {
    return (dv_lmdb_options){.quality = 95};
}

static dv_status check(const dv_lmdb_options *options, dv_error *error) {
    if (options->resize != 0 && (options->resize < 16 || options->resize > 4096))
        return dv_fail(error, DV_ERROR_OPTION, "resize: %zu: must be 0 or from 16 to 4096", options->resize);
    if (options->quality < 50 || options->quality > 100)
        return dv_fail(error, DV_ERROR_OPTION, "quality: %zu: must be from 50 to 100", options->quality);
    if (options->workers > 256)
        return dv_fail(error, DV_ERROR_OPTION, "workers: %zu: must be from 0 to 256", options->workers);
    return DV_OK;
}

/* ---- images -------------------------------------------------------------------------------- */

/* Decodes an image at the given size and packs it again. */
static dv_status repack(item *one, size_t width, size_t height, size_t target_width, size_t target_height,
                        size_t quality, dv_error *error) {
    dv_decoder *decoder;
    uint8_t *packed, *pixels = malloc(target_width * target_height * DV_PIXEL);
    size_t count;
    if (pixels == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory to resize images: free some");
    dv_view view = dv_view_whole(width, height, target_width, target_height);
    dv_status status = dv_decoder_new(target_width, target_height, &decoder, error);
    if (status == DV_OK) {
        status = dv_decoder_open(decoder, one->bytes, one->count, &width, &height, error);
        if (status == DV_OK)
            status = dv_decoder_show(decoder, &view, pixels, error);
        dv_decoder_free(decoder);
    }
    if (status == DV_OK)
        status = dv_jpeg_write(pixels, target_width, target_height, (int)quality, &packed, &count, error);
    free(pixels);
    if (status != DV_OK)
        return status;
    free(one->bytes);
    one->bytes = packed;
    one->count = count;
    one->resized = true;
    return DV_OK;
}

/* Whether an image of this size stays as it is. */
static bool stays(const dv_lmdb_options *options, size_t width, size_t height) {
    return options->resize == 0 || (width < height ? width : height) <= options->resize;
}

/* The size of an image; of one that stays as it is, also whether all of it can be decoded. */
static dv_status measure(const item *one, const dv_lmdb_options *options, size_t *width, size_t *height,
                         dv_error *error) {
    dv_decoder *decoder;
    DV_TRY(dv_decoder_new(1, 1, &decoder, error));
    dv_status status = dv_decoder_open(decoder, one->bytes, one->count, width, height, error);
    if (status == DV_OK && stays(options, *width, *height))
        status = dv_decoder_drain(decoder, error);
    dv_decoder_free(decoder);
    return status;
}

/* Makes the shorter side `resize`, if that is wanted and it is longer. */
static dv_status resize(item *one, const dv_lmdb_options *options, dv_error *error) {
    size_t width, height;
    DV_TRY(measure(one, options, &width, &height, error));
    size_t shorter = width < height ? width : height, longer = width < height ? height : width;
    if (stays(options, width, height))
        return DV_OK;
    size_t other = (options->resize * longer + shorter / 2) / shorter;
    return repack(one, width, height, width < height ? options->resize : other,
                  width < height ? other : options->resize, options->quality, error);
}

/* Reads an image, looks whether it can be decoded, and resizes it if that is wanted. */
static void prepare(const writer *to, size_t place, item *one) {
    dv_record record;
    size_t index = (size_t)dv_order_at(&to->order, place);
    one->bytes = NULL;
    one->resized = false;
    one->damage.status = one->error.status = DV_OK;
    if (to->source->kind->fetch(to->source, to->split, index, &record, &one->error) != DV_OK)
        return;
    dv_folder_image_path(to->source, to->split, index, one->name, sizeof one->name);
    one->label = record.label;
    one->bytes = record.held;
    one->count = record.count;
    dv_status status = resize(one, to->options, &one->damage);
    if (status != DV_OK && status != DV_ERROR_FORMAT) {
        one->error = one->damage;
        one->damage.status = DV_OK;
    }
}

static int count_threads(const writer *to) {
    return to->options->workers > 0 ? (int)to->options->workers : omp_get_max_threads();
}

static void prepare_all(writer *to, size_t count) {
#pragma omp parallel for num_threads(count_threads(to)) schedule(dynamic, 1)
    for (size_t i = 0; i < count; i++)
        prepare(to, to->done + i, &to->items[i]);
}

static void release_all(writer *to, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(to->items[i].bytes);
}

/* ---- transactions -------------------------------------------------------------------------- */

static int put_record(const writer *to, MDB_txn *transaction, size_t place, const item *one) {
    uint8_t name[DV_LMDB_KEY_BYTES];
    dv_lmdb_record record = {(uint32_t)one->label, one->name, strlen(one->name), one->bytes, one->count};
    MDB_val key = {sizeof name, name}, value = {dv_lmdb_record_bytes(&record), NULL};
    dv_lmdb_key(place, name);
    int code = mdb_put(transaction, to->table, &key, &value, MDB_RESERVE | MDB_NOOVERWRITE);
    if (code == 0)
        dv_lmdb_record_write(&record, value.mv_data);
    return code;
}

static int put_description(const writer *to, MDB_txn *transaction) {
    char name[] = DV_LMDB_DESCRIPTION_KEY, *text = dv_lmdb_describe(&to->description);
    if (text == NULL)
        return ENOMEM;
    MDB_val key = {sizeof name, name}, value = {strlen(text), text};
    int code = mdb_put(transaction, to->table, &key, &value, 0);
    free(text);
    return code;
}

/* One transaction: `count` records from the items, and the description. */
static int try_commit(const writer *to, size_t count) {
    MDB_txn *transaction;
    int code = mdb_txn_begin(to->environment, NULL, 0, &transaction);
    if (code != 0)
        return code;
    for (size_t i = 0; i < count && code == 0; i++)
        code = put_record(to, transaction, to->done + i, &to->items[i]);
    if (code == 0)
        code = put_description(to, transaction);
    if (code == 0)
        return mdb_txn_commit(transaction);
    mdb_txn_abort(transaction);
    return code;
}

/* The same; a map that became too small is doubled. */
static dv_status commit(writer *to, size_t count, dv_error *error) {
    int code;
    while ((code = try_commit(to, count)) == MDB_MAP_FULL) {
        MDB_envinfo info;
        mdb_env_info(to->environment, &info);
        code = mdb_env_set_mapsize(to->environment, info.me_mapsize * 2);
        if (code != 0)
            break;
    }
    if (code != 0)
        return dv_lmdb_fail("write", to->path, code, error);
    to->done += count;
    return DV_OK;
}

/* ---- a split ------------------------------------------------------------------------------- */

/* A checksum of the names of a split's files, in order. */
static uint32_t fingerprint(const dv_dataset *source, dv_split split) {
    char name[DV_LMDB_MAX_NAME];
    unsigned long sum = crc32(0, NULL, 0);
    for (size_t i = 0; i < source->shape.images[split]; i++) {
        dv_folder_image_path(source, split, i, name, sizeof name);
        sum = crc32(sum, (const unsigned char *)name, (unsigned)strlen(name) + 1);
    }
    return (uint32_t)sum;
}

static bool same(const dv_lmdb_description *a, const dv_lmdb_description *b) {
    return a->images == b->images && a->classes == b->classes && a->resize == b->resize && a->source == b->source &&
           (a->resize == 0 || a->quality == b->quality);
}

/* Compares what is in the file with what is to be made, and finds out how far it is. */
static dv_status compare(writer *to, MDB_txn *transaction, dv_error *error) {
    char name[] = DV_LMDB_DESCRIPTION_KEY;
    MDB_val key = {sizeof name, name}, value;
    MDB_stat table;
    dv_lmdb_description found = {0};
    int code = mdb_stat(transaction, to->table, &table);
    if (code == 0 && table.ms_entries == 0)
        return DV_OK;
    if (code == 0)
        code = mdb_get(transaction, to->table, &key, &value);
    if (code != 0 && code != MDB_NOTFOUND)
        return dv_lmdb_fail("read", to->path, code, error);
    dv_status status = DV_ERROR_FORMAT;
    if (code == 0)
        status = dv_lmdb_description_read(value.mv_data, value.mv_size, &found, NULL);
    bool fits = status == DV_OK && same(&found, &to->description);
    if (fits) {
        to->done = table.ms_entries - 1;
        to->description.complete = found.complete;
    }
    dv_lmdb_description_free(&found);
    if (fits && to->done <= to->description.images)
        return DV_OK;
    return dv_fail(error, DV_ERROR_FORMAT,
                   "%s was made of other files or with other options: remove it, or choose another place",
                   dv_file_shown(to->path));
}

static dv_status read_state(writer *to, dv_error *error) {
    MDB_txn *transaction;
    int code = mdb_txn_begin(to->environment, NULL, 0, &transaction);
    if (code != 0)
        return dv_lmdb_fail("read", to->path, code, error);
    code = mdb_dbi_open(transaction, NULL, 0, &to->table);
    dv_status status = code == 0 ? compare(to, transaction, error) : dv_lmdb_fail("read", to->path, code, error);
    code = mdb_txn_commit(transaction);
    return status == DV_OK && code != 0 ? dv_lmdb_fail("read", to->path, code, error) : status;
}

/* Keeps other conversions out; the system lets go of it when this process ends, however it does. */
static dv_status lock(writer *to, dv_error *error) {
    to->lock = open(to->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (to->lock < 0)
        return dv_fail(error, DV_ERROR_IO, "could not write %s: %s: check the folder and its permissions",
                       dv_file_shown(to->path), strerror(errno));
    if (flock(to->lock, LOCK_EX | LOCK_NB) == 0)
        return DV_OK;
    return dv_fail(error, DV_ERROR_IO, "%s: another conversion is writing it: wait for that one",
                   dv_file_shown(to->path));
}

static dv_status open_writer(writer *to, const char *destination, dv_error *error) {
    to->path = dv_lmdb_split_path(destination, to->split);
    to->items = calloc(AT_ONCE, sizeof *to->items);
    if (to->path == NULL || to->items == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "no memory for a conversion: free some");
    struct stat status;
    DV_TRY(lock(to, error));
    if (fstat(to->lock, &status) != 0 || !S_ISREG(status.st_mode))
        return dv_fail(error, DV_ERROR_IO, "could not write %s: it is no regular file: choose another place",
                       dv_file_shown(to->path));
    if (status.st_size > 0)
        DV_TRY(dv_lmdb_pages_check(to->path, error));
    int code = mdb_env_create(&to->environment);
    if (code == 0)
        code = mdb_env_set_mapsize(to->environment, FIRST_MAP);
    if (code == 0)
        code = mdb_env_open(to->environment, to->path, MDB_NOSUBDIR | MDB_NOLOCK | MDB_NORDAHEAD, 0666);
    return code == 0 ? read_state(to, error) : dv_lmdb_fail("open", to->path, code, error);
}

static void close_writer(writer *to) {
    if (to->environment != NULL)
        mdb_env_close(to->environment);
    if (to->lock >= 0)
        close(to->lock);
    free(to->items);
    free(to->path);
}

/* ---- telling ------------------------------------------------------------------------------- */

static void tell(const conversion *all, const writer *to) {
    dv_lmdb_tell(all->callbacks, &all->start,
                 (dv_lmdb_progress){.split = to->split,
                                    .done = to->done,
                                    .images = to->description.images,
                                    .all_done = all->before + to->done,
                                    .all_images = all->all_images,
                                    .kept = all->result->kept});
}

/* Sums up what was made, and tells of what was corrupt. The first that failed ends the conversion. */
static dv_status inspect(const conversion *all, const writer *to, size_t count, dv_error *error) {
    char text[DV_ERROR_TEXT_BYTES];
    for (size_t i = 0; i < count; i++) {
        const item *one = &to->items[i];
        if (one->error.status != DV_OK) {
            if (error != NULL)
                *error = one->error;
            return one->error.status;
        }
        all->result->resized += one->resized;
        if (one->damage.status == DV_OK)
            continue;
        all->result->corrupt++;
        snprintf(text, sizeof text, "%s/%.120s: %.120s", dv_folder_split_name(to->split), one->name, one->damage.text);
        if (all->callbacks != NULL && all->callbacks->corrupt != NULL)
            all->callbacks->corrupt(all->callbacks->context, dv_printable(text));
    }
    return DV_OK;
}

/* ---- the conversion ------------------------------------------------------------------------ */

static dv_status write_some(const conversion *all, writer *to, size_t count, dv_error *error) {
    prepare_all(to, count);
    dv_status status = inspect(all, to, count, error);
    if (status == DV_OK) {
        to->description.complete = to->done + count == to->description.images;
        status = commit(to, count, error);
    }
    release_all(to, count);
    return status;
}

static dv_status write_split(const conversion *all, writer *to, dv_error *error) {
    all->result->kept += to->done;
    while (!to->description.complete && !dv_lmdb_stop_asked(all->callbacks)) {
        size_t left = to->description.images - to->done;
        DV_TRY(write_some(all, to, left < AT_ONCE ? left : AT_ONCE, error));
        tell(all, to);
    }
    return DV_OK;
}

static dv_status convert_split(conversion *all, const dv_dataset *source, dv_split split, const char *destination,
                               const dv_lmdb_options *options, dv_error *error) {
    size_t images = source->shape.images[split];
    writer to = {.source = source,
                 .split = split,
                 .options = options,
                 .lock = -1,
                 .order = dv_lmdb_order(split, images),
                 .description = {.images = images,
                                 .classes = source->shape.classes,
                                 .class_names = source->class_names,
                                 .resize = options->resize,
                                 .quality = options->quality,
                                 .source = fingerprint(source, split)}};
    dv_status status = open_writer(&to, destination, error);
    if (status == DV_OK)
        status = write_split(all, &to, error);
    all->before += to.done;
    all->result->images[split] = to.done;
    all->result->complete &= to.description.complete;
    close_writer(&to);
    return status;
}

static dv_status make_folder(const char *path, dv_error *error) {
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return DV_OK;
    return dv_fail(error, DV_ERROR_IO, "could not make the folder %s: %s: check the path", dv_file_shown(path),
                   strerror(errno));
}

/* Names of classes become lines of text that other programs read. */
static dv_status check_names(const dv_dataset *source, dv_error *error) {
    for (size_t i = 0; i < source->shape.classes; i++)
        if (!dv_all_printable(source->class_names[i]))
            return dv_fail(
                error, DV_ERROR_FORMAT,
                "the class \"%.80s\" has control characters, or bytes that are no UTF-8, in its name: rename "
                "its folders",
                source->class_names[i]);
    return DV_OK;
}

static dv_status convert(conversion *all, const dv_dataset *source, const char *destination,
                         const dv_lmdb_options *options, dv_error *error) {
    all->all_images = source->shape.images[DV_TRAIN] + source->shape.images[DV_TEST];
    all->result->complete = 1;
    for (dv_split split = 0; split < DV_SPLIT_COUNT && all->result->complete; split++)
        DV_TRY(convert_split(all, source, split, destination, options, error));
    if (!all->result->complete || dv_lmdb_stop_asked(all->callbacks))
        return DV_OK;
    return dv_lmdb_verify_against(destination, source, all->callbacks, all->result, error);
}

dv_status dv_lmdb_convert(const char *source, const char *destination, const dv_lmdb_options *options,
                          const dv_lmdb_callbacks *callbacks, dv_lmdb_result *result, dv_error *error) {
    dv_dataset *data;
    if (source == NULL || destination == NULL || options == NULL || result == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "lmdb: source, destination, options or result is NULL");
    conversion all = {.callbacks = callbacks, .result = result};
    *result = (dv_lmdb_result){0};
    clock_gettime(CLOCK_MONOTONIC, &all.start);
    DV_TRY(check(options, error));
    const dv_dataset_options usual = dv_dataset_options_default();
    DV_TRY(dv_folder_images.open(source, &usual, &data, error));
    dv_status status = check_names(data, error);
    if (status == DV_OK)
        status = make_folder(destination, error);
    if (status == DV_OK)
        status = convert(&all, data, destination, options, error);
    dv_dataset_close(data);
    return status;
}
