/* LMDB files: records come back as they were written, a conversion that was stopped goes on to the same records, and
 * what is damaged, foreign or half done is named. */
#include "images.h"

#include "base/random.h"
#include "data/lmdb_file.h"

#include <division/tools/lmdb.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/resource.h>

enum { CLASSES = 3, TRAIN = 50, TEST = 4, IMAGES = CLASSES * TRAIN };

static int make_folder(void **state) {
    int code = folder_new(state);
    char path[FOLDER_PATH_BYTES];
    folder_path(state, "images", path);
    mkdir(path, 0777);
    images_make_folder(path, CLASSES, TRAIN, TEST);
    return code;
}

typedef struct paths {
    char images[FOLDER_PATH_BYTES], made[FOLDER_PATH_BYTES], train[FOLDER_PATH_BYTES];
} paths;

static paths name(void **state) {
    paths made;
    folder_path(state, "images", made.images);
    folder_path(state, "made", made.made);
    folder_path(state, "made/train.lmdb", made.train);
    return made;
}

static dv_status convert(const paths *at, size_t resize, const dv_lmdb_callbacks *callbacks, dv_lmdb_result *result,
                         dv_error *error) {
    dv_lmdb_options options = dv_lmdb_options_default();
    options.resize = resize;
    options.workers = 2;
    return dv_lmdb_convert(at->images, at->made, &options, callbacks, result, error);
}

/* ---- the layout ---------------------------------------------------------------------------- */

static void test_record(void **state) {
    (void)state;
    const uint8_t image[] = {1, 2, 3, 4, 5};
    dv_lmdb_record record = {7, "n01/a.JPEG", 10, image, sizeof image}, found;
    uint8_t value[DV_LMDB_HEADER_BYTES + 15], key[DV_LMDB_KEY_BYTES];
    assert_int_equal(dv_lmdb_record_bytes(&record), sizeof value);
    dv_lmdb_record_write(&record, value);
    assert_memory_equal(value + 4, "\x07\0\0\0\x0a\0\0\0n01/a.JPEG\1\2\3\4\5", 23); /* as in docs/data.md */
    assert_ok(dv_lmdb_record_read(value, sizeof value, 8, &found, &error));
    assert_int_equal(found.label, 7);
    assert_memory_equal(found.name, "n01/a.JPEG", found.name_bytes);
    assert_int_equal(found.image_bytes, sizeof image);
    assert_memory_equal(found.image, image, sizeof image);
    assert_fails(dv_lmdb_record_read(value, sizeof value, 7, &found, &error), DV_ERROR_FORMAT, "label 7 of 7 classes");
    for (size_t bytes = 0; bytes < sizeof value; bytes++)
        assert_int_equal(dv_lmdb_record_read(value, bytes, 8, &found, NULL), DV_ERROR_FORMAT);
    for (size_t bit = 0; bit < 8 * sizeof value; bit++) { /* each bit matters */
        value[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(dv_lmdb_record_read(value, sizeof value, 8, &found, NULL), DV_ERROR_FORMAT);
        value[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    dv_lmdb_key(0x0102030405060708, key);
    assert_memory_equal(key, "\1\2\3\4\5\6\7\x08", sizeof key);
}

static void test_description(void **state) {
    (void)state;
    char *names[] = {"one", "", "with a blank"};
    dv_lmdb_description written = {12, 3, 256, 95, 0xdeadbeef, 1, names}, found;
    char *text = dv_lmdb_describe(&written);
    assert_non_null(text);
    size_t bytes = strlen(text);
    assert_ok(dv_lmdb_description_read(text, bytes, &found, &error));
    assert_true(found.images == 12 && found.classes == 3 && found.resize == 256 && found.quality == 95);
    assert_true(found.source == 0xdeadbeef && found.complete == 1);
    assert_string_equal(found.class_names[2], "with a blank");
    dv_lmdb_description_free(&found);
    for (size_t cut = 0; cut < bytes; cut++) {
        assert_int_equal(dv_lmdb_description_read(text, cut, &found, NULL), DV_ERROR_FORMAT);
        dv_lmdb_description_free(&found);
    }
    text[14] = '2';
    assert_fails(dv_lmdb_description_read(text, bytes, &found, &error), DV_ERROR_FORMAT, "version 2");
    free(text);
}

/* ---- the conversion ------------------------------------------------------------------------ */

/* The bytes of a file, the caller's to free. */
static uint8_t *read_file(const char *path, size_t *bytes) {
    FILE *stream = fopen(path, "rb");
    uint8_t *data = malloc(1 << 20);
    assert_true(stream != NULL && data != NULL);
    *bytes = fread(data, 1, 1 << 20, stream);
    fclose(stream);
    return data;
}

/* Every image is there once, with its bytes and its label, and not in the folder's order. */
static void test_all_there(void **state) {
    paths at = name(state);
    dv_lmdb_result result;
    dv_lmdb_file file;
    size_t seen[CLASSES] = {0}, in_order = 0;
    assert_ok(convert(&at, 0, NULL, &result, &error));
    assert_true(result.complete && result.images[DV_TRAIN] == IMAGES && result.images[DV_TEST] == CLASSES * TEST);
    assert_true(result.kept == 0 && result.resized == 0 && result.bytes[DV_TRAIN] > IMAGES * 500);
    assert_ok(dv_lmdb_file_open(&file, at.train, &error));
    assert_string_equal(file.description.class_names[1], "class1");
    for (size_t i = 0; i < IMAGES; i++) {
        dv_lmdb_record record;
        void *held;
        char path[2 * FOLDER_PATH_BYTES];
        size_t bytes;
        assert_ok(dv_lmdb_file_find(&file, i, &record, &held, &error));
        snprintf(path, sizeof path, "%s/train/%.*s", at.images, (int)record.name_bytes, record.name);
        uint8_t *data = read_file(path, &bytes);
        assert_int_equal(bytes, record.image_bytes);
        assert_memory_equal(data, record.image, bytes);
        assert_int_equal(record.name[5] - '0', record.label); /* "class1/..." */
        in_order += record.label == i / TRAIN;
        seen[record.label]++;
        free(data);
        dv_lmdb_file_release(held);
    }
    for (size_t label = 0; label < CLASSES; label++)
        assert_int_equal(seen[label], TRAIN);
    assert_true(in_order < IMAGES / 2);
    dv_lmdb_file_close(&file);
    assert_ok(dv_lmdb_verify(at.made, NULL, &result, &error));
    assert_ok(convert(&at, 0, NULL, &result, &error)); /* again: nothing to do */
    assert_int_equal(result.kept, IMAGES + CLASSES * TEST);
}

static void test_resized(void **state) {
    paths at = name(state);
    dv_lmdb_result result;
    dv_lmdb_file file;
    dv_decoder *decoder;
    assert_ok(convert(&at, 48, NULL, &result, &error));
    assert_in_range(result.resized, 20, IMAGES);
    assert_ok(dv_lmdb_file_open(&file, at.train, &error));
    assert_ok(dv_decoder_new(1, 1, &decoder, &error));
    for (size_t i = 0; i < IMAGES; i++) {
        dv_lmdb_record record;
        void *held;
        size_t width, height;
        assert_ok(dv_lmdb_file_find(&file, i, &record, &held, &error));
        assert_ok(dv_decoder_open(decoder, record.image, record.image_bytes, &width, &height, &error));
        assert_in_range(width < height ? width : height, 40, 48);
        dv_lmdb_file_release(held);
    }
    dv_decoder_free(decoder);
    dv_lmdb_file_close(&file);
    assert_fails(convert(&at, 50, NULL, &result, &error), DV_ERROR_FORMAT,
                 "train.lmdb was made of other files or with other options");
    assert_fails(convert(&at, 15, NULL, &result, &error), DV_ERROR_OPTION, "resize: 15: must be 0 or from 16 to 4096");
}

/* The data set shows what the folder shows, though in another order. */
static void test_data_set(void **state) {
    paths at = name(state);
    char text[2 * FOLDER_PATH_BYTES];
    dv_lmdb_result result;
    dv_dataset *data;
    static uint8_t image[224 * 224 * 3];
    int32_t label, alone;
    assert_ok(convert(&at, 0, NULL, &result, &error));
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "lmdb:%s", i == 0 ? at.made : at.train);
        assert_ok(dv_dataset_open(text, &data, &error));
        dv_dataset_shape shape = dv_dataset_describe(data);
        assert_true(shape.images[DV_TRAIN] == IMAGES && shape.images[DV_TEST] == CLASSES * TEST);
        assert_true(shape.classes == CLASSES && shape.side == 224);
        assert_string_equal(dv_dataset_class_name(data, 2), "class2");
        assert_ok(dv_dataset_load(data, DV_TEST, 5, image, &label, &error));
        assert_ok(dv_dataset_label(data, DV_TEST, 5, &alone, &error));
        assert_int_equal(label, alone);
        dv_dataset_close(data);
    }
}

/* Stopped after each transaction: it goes on, keeps what there is, and the records are those of one go. */
static volatile sig_atomic_t stop;

static void ask_to_stop(void *context, const dv_lmdb_progress *progress) {
    (void)context;
    if (!progress->verifying)
        stop = 1;
}

static void test_goes_on(void **state) {
    paths at = name(state), other = at;
    dv_lmdb_callbacks callbacks = {.progress = ask_to_stop, .stop = &stop};
    dv_lmdb_result result = {0}, whole;
    size_t rounds = 0;
    folder_path(state, "other", other.made);
    while (!result.complete) {
        size_t before = result.images[DV_TRAIN] + result.images[DV_TEST];
        stop = 0;
        assert_ok(convert(&at, 0, &callbacks, &result, &error));
        assert_int_equal(result.kept, before);
        assert_in_range(++rounds, 1, 10);
        dv_dataset *data;
        char text[2 * FOLDER_PATH_BYTES];
        snprintf(text, sizeof text, "lmdb:%s", at.made);
        if (result.images[DV_TRAIN] < IMAGES)
            assert_fails(dv_dataset_open(text, &data, &error), DV_ERROR_FORMAT, "train.lmdb is not complete");
    }
    assert_true(rounds > 3);
    assert_ok(convert(&other, 0, NULL, &whole, &error));
    for (dv_split split = 0; split < DV_SPLIT_COUNT; split++) {
        dv_lmdb_file a, b;
        char *one = dv_lmdb_split_path(at.made, split), *two = dv_lmdb_split_path(other.made, split);
        assert_ok(dv_lmdb_file_open(&a, one, &error));
        assert_ok(dv_lmdb_file_open(&b, two, &error));
        for (size_t i = 0; i < whole.images[split]; i++) {
            dv_lmdb_record left, right;
            void *held_a, *held_b;
            assert_ok(dv_lmdb_file_find(&a, i, &left, &held_a, &error));
            assert_ok(dv_lmdb_file_find(&b, i, &right, &held_b, &error));
            assert_int_equal(left.image_bytes, right.image_bytes);
            assert_memory_equal(left.image, right.image, left.image_bytes);
            assert_memory_equal(left.name, right.name, left.name_bytes);
            dv_lmdb_file_release(held_a);
            dv_lmdb_file_release(held_b);
        }
        dv_lmdb_file_close(&a);
        dv_lmdb_file_close(&b);
        free(one);
        free(two);
    }
}

/* A disk that is full, as far as the process can tell; then room again. */
static void test_full_disk(void **state) {
    paths at = name(state);
    dv_lmdb_result result;
    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = before;
    low.rlim_cur = 150000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    dv_error full = {0};
    dv_status status = convert(&at, 0, NULL, &result, &full);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, DV_ERROR_IO);
    assert_non_null(strstr(full.text, "train.lmdb: "));
    assert_non_null(strstr(full.text, ": make room and call it again"));
    assert_ok(convert(&at, 0, NULL, &result, &error));
    assert_true(result.complete);
    assert_in_range(result.kept, 1, IMAGES - 1);
}

/* Adds an image to those that are to be converted. */
static void test_other_files(void **state) {
    paths at = name(state);
    char path[FOLDER_PATH_BYTES];
    dv_lmdb_result result;
    assert_ok(convert(&at, 0, NULL, &result, &error));
    assert_int_equal(rename(folder_path(state, "images/train/class0/image1.JPEG", path),
                            folder_path(state, "images/train/class0/imageX.JPEG", at.train)),
                     0);
    assert_fails(convert(&at, 0, NULL, &result, &error), DV_ERROR_FORMAT, "was made of other files");
}

/* What can't be decoded is kept as it is and told of. */
static void hear(void *context, const char *text) {
    snprintf(context, 256, "%s", text);
}

static void test_corrupt_image(void **state) {
    paths at = name(state);
    char path[FOLDER_PATH_BYTES], told[256] = "";
    dv_lmdb_callbacks callbacks = {.corrupt = hear, .context = told};
    dv_lmdb_result result;
    images_write_file(folder_path(state, "images/val/class1/image51.JPEG", path), "no image", 8);
    assert_ok(convert(&at, 48, &callbacks, &result, &error));
    assert_int_equal(result.corrupt, 1);
    assert_string_equal(told, "val/class1/image51.JPEG: it is not JPEG, PNG or WebP but something else");
    folder_path(state, "as they are", at.made); /* looked at, too, where nothing is resized */
    told[0] = '\0';
    assert_ok(convert(&at, 0, &callbacks, &result, &error));
    assert_int_equal(result.corrupt, 1);
    assert_non_null(strstr(told, "val/class1/image51.JPEG"));
}

/* ---- damage -------------------------------------------------------------------------------- */

static void flip_byte(const char *path, long at) {
    FILE *stream = fopen(path, "r+b");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, at, SEEK_SET), 0);
    int byte = fgetc(stream);
    assert_int_equal(fseek(stream, at, SEEK_SET), 0);
    fputc(byte ^ 0x20, stream);
    assert_int_equal(fclose(stream), 0);
}

static void test_damage(void **state) {
    paths at = name(state);
    dv_lmdb_result result;
    dv_lmdb_file file;
    dv_lmdb_record record;
    void *held;
    assert_ok(convert(&at, 0, NULL, &result, &error));
    assert_ok(dv_lmdb_file_open(&file, at.train, &error));
    assert_ok(dv_lmdb_file_find(&file, 77, &record, &held, &error));
    uint8_t pattern[64];
    memcpy(pattern, record.image + record.image_bytes - 64, 64); /* find it in the file, wherever LMDB has put it */
    dv_lmdb_file_release(held);
    dv_lmdb_file_close(&file);
    size_t bytes;
    uint8_t *data = read_file(at.train, &bytes);
    long place = -1;
    for (size_t i = 0; i + 64 <= bytes && place < 0; i++)
        if (memcmp(data + i, pattern, 64) == 0)
            place = (long)i;
    free(data);
    assert_true(place > 0);
    flip_byte(at.train, place + 10);
    assert_fails(dv_lmdb_verify(at.made, NULL, &result, &error), DV_ERROR_FORMAT,
                 "train.lmdb: record 77: the checksum is wrong");
    assert_int_equal(truncate(at.train, (off_t)bytes / 2), 0);
    assert_fails(dv_lmdb_verify(at.made, NULL, &result, &error), DV_ERROR_FORMAT, "it was cut short");
}

/* LMDB's own first pages, which it believes: sizes of pages that would lead it out of the file. */
static void test_damaged_head(void **state) {
    paths at = name(state);
    dv_lmdb_result result;
    assert_ok(convert(&at, 0, NULL, &result, &error));
    for (long page = 0; page < 2; page++)
        for (long byte = 0; byte < 4; byte++) {
            long place = page * sysconf(_SC_PAGESIZE) + 40 + byte;
            flip_byte(at.train, place);
            assert_fails(dv_lmdb_verify(at.made, NULL, &result, &error), DV_ERROR_FORMAT,
                         "train.lmdb: its first pages");
            flip_byte(at.train, place);
        }
    assert_ok(dv_lmdb_verify(at.made, NULL, &result, &error));
}

/* Whether it is a page that leads to others, by its flags. */
static bool leads(const uint8_t *page) {
    return page[10] == 1 || page[10] == 2 || page[10] == 8;
}

/* A file with a few bytes of such a page, or of its beginning, set to others. */
static void write_damaged(const char *path, const uint8_t *data, size_t bytes, uint64_t seed) {
    const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    dv_random key = dv_random_key(&seed, 1);
    uint8_t *damaged = malloc(bytes);
    assert_non_null(damaged);
    memcpy(damaged, data, bytes);
    uint32_t next = 0;
    size_t page;
    do
        page = dv_random_word(key, next++) % (bytes / page_bytes);
    while (!leads(data + page * page_bytes));
    size_t count = 1 + dv_random_word(key, next++) % 8, span = dv_random_word(key, next++) % 2 ? page_bytes : 64;
    for (size_t i = 0; i < count; i++, next += 2)
        damaged[page * page_bytes + dv_random_word(key, next) % span] = (uint8_t)dv_random_word(key, next + 1);
    images_write_file(path, damaged, bytes);
    free(damaged);
}

/* Pages of LMDB's own that are damaged: told of, or of no account, but never the end of the process. */
static void test_damaged_pages(void **state) {
    paths at = name(state);
    dv_lmdb_result result;
    dv_error told;
    size_t bytes, refused = 0, cases = 300 / test_scale();
    assert_ok(convert(&at, 0, NULL, &result, &error));
    uint8_t *data = read_file(at.train, &bytes);
    for (size_t seed = 0; seed < cases; seed++) {
        write_damaged(at.train, data, bytes, seed);
        dv_status status = dv_lmdb_verify(at.made, NULL, &result, &told);
        refused += status != DV_OK;
        if (status != DV_OK && strstr(told.text, "train.lmdb") == NULL)
            fail_msg("case %zu: %s", seed, told.text);
        if (seed % 4 == 0) /* what goes on with it, too */
            (void)convert(&at, 0, NULL, &result, &told);
    }
    print_message("%zu of %zu refused\n", refused, cases);
    assert_true(refused > cases / 4 && refused < cases);
    free(data);
}

static void test_foreign(void **state) {
    paths at = name(state);
    char text[2 * FOLDER_PATH_BYTES];
    dv_lmdb_result result;
    dv_dataset *data = NULL;
    snprintf(text, sizeof text, "lmdb:%s", at.made);
    assert_fails(dv_dataset_open("lmdb", &data, &error), DV_ERROR_OPTION, "lmdb:DIR");
    assert_fails(dv_dataset_open(text, &data, &error), DV_ERROR_IO, "No such file");
    mkdir(at.made, 0777);
    images_write_file(at.train, "", 0);
    assert_fails(dv_dataset_open(text, &data, &error), DV_ERROR_FORMAT, "train.lmdb: it is empty: convert it again");
    char page[8192] = "some other file";
    images_write_file(at.train, page, sizeof page);
    assert_fails(dv_dataset_open(text, &data, &error), DV_ERROR_FORMAT, "is it a file of 'division data lmdb'?");
    assert_fails(convert(&at, 0, NULL, &result, &error), DV_ERROR_FORMAT, "train.lmdb");
    assert_fails(dv_lmdb_convert(at.made, at.made, &(dv_lmdb_options){.quality = 95}, NULL, &result, &error),
                 DV_ERROR_FORMAT, "made has no folders: put the images of each class into one of their own");
    remove(at.train);
    MDB_env *environment; /* an LMDB file of somebody else's */
    MDB_txn *transaction;
    MDB_dbi table;
    MDB_val key = {1, "a"}, value = {1, "b"};
    assert_int_equal(mdb_env_create(&environment), 0);
    assert_int_equal(mdb_env_open(environment, at.train, MDB_NOSUBDIR | MDB_NOLOCK, 0666), 0);
    assert_int_equal(mdb_txn_begin(environment, NULL, 0, &transaction), 0);
    assert_int_equal(mdb_dbi_open(transaction, NULL, 0, &table), 0);
    assert_int_equal(mdb_put(transaction, table, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(transaction), 0);
    mdb_env_close(environment);
    assert_fails(dv_dataset_open(text, &data, &error), DV_ERROR_FORMAT, "not one that 'division data lmdb' made");
    assert_fails(convert(&at, 0, NULL, &result, &error), DV_ERROR_FORMAT, "was made of other files");
    assert_null(data);
}

/* The two files swapped with those of other classes. */
static void test_swapped(void **state) {
    paths at = name(state), other = at;
    char path[FOLDER_PATH_BYTES], text[2 * FOLDER_PATH_BYTES], from[FOLDER_PATH_BYTES];
    dv_lmdb_result result;
    dv_dataset *data = NULL;
    folder_path(state, "fewer", other.images);
    mkdir(other.images, 0777);
    images_make_folder(other.images, 2, 3, 1);
    folder_path(state, "other", other.made);
    assert_ok(convert(&at, 0, NULL, &result, &error));
    assert_ok(convert(&other, 0, NULL, &result, &error));
    assert_int_equal(rename(folder_path(state, "other/val.lmdb", from), folder_path(state, "made/val.lmdb", path)), 0);
    snprintf(text, sizeof text, "lmdb:%s", at.made);
    assert_fails(dv_dataset_open(text, &data, &error), DV_ERROR_FORMAT, "different classes, from class 2 on");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_description),
        cmocka_unit_test_setup_teardown(test_all_there, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_resized, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_data_set, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_goes_on, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_full_disk, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_other_files, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_corrupt_image, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_damage, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_damaged_head, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_damaged_pages, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_foreign, make_folder, images_folder_free),
        cmocka_unit_test_setup_teardown(test_swapped, make_folder, images_folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
