/* Files of torch.save: what PyTorch itself wrote (tests/golden/torch_files.py) is read, old forms that it no longer
 * writes are read from pickles made by hand, and what is broken or asks for anything else is refused by name. */
#include "check.h"
#include "folder.h"

#include "train/array_file.h"

#include <stdbool.h>

enum { MOST_BYTES = 1 << 14, MOST_ELEMENTS = 64 };

static dv_array_file *open_golden(const char *name) {
    char path[FOLDER_PATH_BYTES];
    dv_array_file *file = NULL;
    snprintf(path, sizeof path, "%s/tests/golden/torch/%s", getenv("DV_SOURCE_DIR"), name);
    assert_ok(dv_array_file_open(path, &file, &error));
    return file;
}

/* The array has this shape, and element i is i / 4 - 1. */
static void assert_ramp(const dv_array_file *file, const char *name, const char *type, int rank, const size_t *shape) {
    const dv_array *array = dv_array_file_find(file, name);
    float values[MOST_ELEMENTS];
    if (array == NULL)
        fail_msg("no %s", name);
    assert_string_equal(dv_array_type_name(array->type), type);
    assert_int_equal(array->rank, rank);
    for (int d = 0; d < rank; d++)
        assert_int_equal(array->shape[d], shape[d]);
    assert_true(array->count <= MOST_ELEMENTS);
    assert_ok(dv_array_file_read(file, array, values, &error));
    for (size_t i = 0; i < array->count; i++)
        if (values[i] != (float)i / 4 - 1)
            fail_msg("%s[%zu] is %g", name, i, (double)values[i]);
}

static void test_types_and_strides(void **state) {
    static const char *const names[] = {"zip.pth", "legacy.pth", "zip_protocol4.pth"};
    static const struct {
        const char *name, *type;
        int rank;
        size_t shape[4];
    } arrays[] = {
        {"conv.weight", "F32", 4, {2, 3, 2, 2}},
        {"conv.channels_last", "F32", 4, {2, 3, 2, 2}},
        {"transposed", "F32", 2, {3, 4}},
        {"double", "F64", 1, {5}},
        {"half", "F16", 1, {5}},
        {"brain", "BF16", 1, {5}},
        {"view", "F32", 1, {8}},
        {"view.again", "F32", 1, {1}},
        {"scalar", "F32", 0, {0}},
        {"empty", "F32", 2, {0, 5}},
    };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        dv_array_file *file = open_golden(names[i]);
        for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
            assert_ramp(file, arrays[a].name, arrays[a].type, arrays[a].rank, arrays[a].shape);
        const dv_array *whole = dv_array_file_find(file, "norm.num_batches_tracked");
        float value;
        assert_non_null(whole);
        assert_fails(dv_array_file_read(file, whole, &value, &error), DV_ERROR_UNSUPPORTED, "tracked is I64");
        assert_null(dv_array_file_at(file, sizeof arrays / sizeof *arrays + 1));
        assert_null(dv_array_file_note(file, "model"));
        dv_array_file_close(file);
    }
}

/* Weights inside of a checkpoint, under a wrapper's prefix; nothing else of it is taken for weights. */
static void test_wrapped(void **state) {
    static const char *const names[] = {"wrapped_zip.pth", "wrapped_legacy.pth"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dv_array_file *file = open_golden(names[i]);
        assert_ramp(file, "weight", "F32", 2, (const size_t[]){1, 2});
        assert_ramp(file, "bias", "F32", 1, (const size_t[]){1});
        assert_null(dv_array_file_at(file, 2));
        dv_array_file_close(file);
    }
}

static void test_old_dense_names(void **state) {
    static const char *const names[] = {"old_dense.pth", "legacy_protocol4.pth"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        dv_array_file *file = open_golden(names[i]);
        assert_ramp(file, "features.denseblock1.denselayer2.norm1.weight", "F32", 1, (const size_t[]){2});
        assert_ramp(file, "features.denseblock1.denselayer2.conv2.weight", "F32", 1, (const size_t[]){2});
        assert_ramp(file, "features.denseblock1.denselayer2.norm2.running_mean", "F32", 1, (const size_t[]){2});
        dv_array_file_close(file);
    }
}

static void test_refused(void **state) {
    static const struct {
        const char *name;
        dv_status status;
        const char *reason;
    } cases[] = {
        {"module_zip.pth", DV_ERROR_UNSUPPORTED,
         "asks for torch.nn.modules.linear.Linear, which is not executed: save"},
        {"module_legacy.pth", DV_ERROR_UNSUPPORTED, "asks for torch.nn.modules.linear.Linear, which is not executed"},
        {"script.pt", DV_ERROR_UNSUPPORTED, "script.pt is a TorchScript module: save its weights alone"},
        {"tensor.pth", DV_ERROR_UNSUPPORTED, "has no dictionary of tensors: save weights alone"},
        {"complex.pth", DV_ERROR_FORMAT, "it has a torch.ComplexFloatStorage, and weights are of floating point"},
        {"expanded.pth", DV_ERROR_FORMAT, "a has elements that share their memory, as an expanded tensor"},
    };
    char path[FOLDER_PATH_BYTES];
    dv_array_file *file;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(path, sizeof path, "%s/tests/golden/torch/%s", getenv("DV_SOURCE_DIR"), cases[i].name);
        assert_fails(dv_array_file_open(path, &file, &error), cases[i].status, cases[i].reason);
    }
}

/* ---- made by hand --------------------------------------------------------------------------- */

typedef struct bytes {
    unsigned char data[MOST_BYTES];
    size_t count;
} bytes;

static void add(bytes *b, const void *data, size_t count) {
    assert_true(b->count + count <= MOST_BYTES);
    memcpy(b->data + b->count, data, count);
    b->count += count;
}

#define ADD(b, text) add(b, text, sizeof(text) - 1)

static const char *write_bytes(void **state, const bytes *b, char *path) {
    (void)remove(folder_path(state, "made.pth", path)); /* some file systems wait for the disk if it is overwritten */
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b->data, 1, b->count, file), b->count);
    assert_int_equal(fclose(file), 0);
    return path;
}

#define FRONT "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define MACHINE "\x80\x02M\xe9\x03.\x80\x02}U\x0dlittle_endian\x88s."
/* A tensor of shape [2], of the storage "k". */
#define STORAGE                                      \
    "(U\x07storagectorch\nFloatStorage\nU\x01kU\x03" \
    "cpuK\x02NtQ"
#define TENSOR "ctorch._utils\n_rebuild_tensor\n(" STORAGE "K\x00K\x02\x85K\x01\x85tR"
#define KEYS "\x80\x02]U\x01ka."
#define ELEMENTS "\x02\0\0\0\0\0\0\0\0\0\x80\xbf\0\0\x40\xbf"

/* A legacy file whose pickle is given; its tensors are -1, -0.75. */
static const char *make(void **state, const void *pickle, size_t count, char *path) {
    bytes b = {.count = 0};
    ADD(&b, FRONT MACHINE "\x80\x02");
    add(&b, pickle, count);
    ADD(&b, "." KEYS ELEMENTS);
    return write_bytes(state, &b, path);
}

/* What PyTorch wrote before version 0.4, and what Python 2 did. */
static void test_old_forms(void **state) {
    static const struct {
        const char *pickle;
        size_t count;
    } forms[] = {
#define FORM(text) {text, sizeof(text) - 1}
        FORM("}U\x01"
             "a" TENSOR "s"),
        FORM("ccollections\nOrderedDict\n)R(U\x01"
             "a" TENSOR "u}U\x09_metadata}sb"), /* with attributes */
        FORM("ccollections\nOrderedDict\n(](](U\x01"
             "a" TENSOR "eetR"), /* of a list of pairs */
        FORM("}U\x01"
             "actorch.nn.parameter\nParameter\n)\x81(" TENSOR "\x88}tbs"), /* a state behind it */
        FORM("}U\x01"
             "actorch._utils\n_rebuild_parameter\n(" TENSOR "\x88NtRs"),
        FORM("}U\x05modelU\x00"
             "0}U\x01"
             "a" TENSOR "sq\x07"
             "0h\x07s"), /* POP is no opcode of weights */
    };
    char path[FOLDER_PATH_BYTES];
    dv_array_file *file;
    for (size_t i = 0; i < 5; i++) {
        assert_ok(dv_array_file_open(make(state, forms[i].pickle, forms[i].count, path), &file, &error));
        assert_ramp(file, "a", "F32", 1, (const size_t[]){2});
        dv_array_file_close(file);
    }
    assert_fails(dv_array_file_open(make(state, forms[5].pickle, forms[5].count, path), &file, &error), DV_ERROR_FORMAT,
                 "the opcode 0x30, which weights do not need");
}

#define DICTIONARY(tensor) \
    "}U\x01"               \
    "a" tensor "s"
#define VIEW(offset, shape, stride) "ctorch._utils\n_rebuild_tensor\n(" STORAGE offset shape stride "tR"

static void test_bad_pickles(void **state) {
    static const struct {
        const char *pickle;
        size_t count;
        const char *reason;
    } cases[] = {
#define CASE(text, reason) {text, sizeof(text) - 1, reason}
        CASE("cposix\nsystem\n(U\x02lstR", "asks for posix.system, which is not executed"),
        CASE("cbuiltins\neval\n", "asks for builtins.eval"),
        CASE("\x8c\x02os\x8c\x06system\x93", "asks for os.system"),
        CASE("ctorch.storage\n_load_from_bytes\n", "asks for torch.storage._load_from_bytes"),
        CASE("ctorch\nload\n", "asks for torch.load"),
        CASE("ctorch\nFloatStorage\n)R", "a class of storages is called"),
        CASE("I5\n", "the opcode 0x49"),
        CASE("cnocollections", "no end"),
        CASE("s", "takes values that are not there"),
        CASE("(s", "takes values that are not there"),
        CASE("}(s", "no list and no dictionary"),
        CASE("u", "takes values that are not there"),
        CASE("(u", "no list and no dictionary"),
        CASE("](NNu", "no list and no dictionary"),
        CASE("}(Nu", "a key without its value"),
        CASE("}a", "no list and no dictionary"),
        CASE("R", "takes a value that is not there"),
        CASE("NNR", "calls what is no function"),
        CASE("Q", "takes a value that is not there"),
        CASE("NQ", "is no storage"),
        CASE("q\x01", "takes a value that is not there"),
        CASE("Nr\xff\xff\xff\x7f", "more values than weights have"),
        CASE("h\x01", "did not keep"),
        CASE("\x87", "takes values that are not there"),
        CASE("t", "takes values that are not there"),
        CASE("X\xff\xff\xff\x7f", "a text is longer than its pickle"),
        CASE("U\x02"
             "a\0",
             "a zero byte"),
        CASE("NNb", "gives a state to what has none"),
        CASE(DICTIONARY(VIEW("K\x01", "K\x02\x85", "K\x01\x85")), "a reaches beyond its storage"),
        CASE(DICTIONARY(VIEW("K\x00", "K\x02\x85", "K\x02\x85")), "a reaches beyond its storage"),
        CASE(DICTIONARY(VIEW("K\x00", "K\x02K\x02\x86", "K\x01K\x00\x86")), "share their memory"),
        CASE(DICTIONARY(VIEW("K\x00", "K\x02\x85", "K\x01K\x01\x86")), "no whole numbers for shape and strides"),
        CASE(DICTIONARY(VIEW("J\xff\xff\xff\xff", "K\x02\x85", "K\x01\x85")), "a tensor is made of something else"),
        CASE(DICTIONARY(VIEW("K\x00", "J\xff\xff\xff\xff\x85", "K\x01\x85")), "no whole numbers"),
        CASE(
            DICTIONARY(VIEW("K\x00", "J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x87", "K\x01K\x01K\x01\x87")),
            "a shape that overflows"),
        CASE(DICTIONARY(TENSOR) "(U\x01"
                                "a" TENSOR "u",
             "two tensors a"),
    };
    char path[FOLDER_PATH_BYTES];
    dv_array_file *file;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_error error = {0};
        dv_status status = dv_array_file_open(make(state, cases[i].pickle, cases[i].count, path), &file, &error);
        if ((status != DV_ERROR_FORMAT && status != DV_ERROR_UNSUPPORTED) ||
            strstr(error.text, cases[i].reason) == NULL)
            fail_msg("case %zu: status %d \"%s\", expected \"%s\"", i, (int)status, error.text, cases[i].reason);
    }
}

/* Storages of the legacy form. */
static void test_bad_storages(void **state) {
    static const struct {
        const char *rest;
        size_t count;
        const char *reason;
    } cases[] = {
        CASE("\x80\x02].", "a tensor's storage is not there"),
        CASE(KEYS, "ends among its storages"),
        CASE(KEYS "\x02\0\0\0\0\0\0\0\0\0\x80\xbf\0\0\x40", "ends among its storages"),
        CASE(KEYS "\x03\0\0\0\0\0\0\0\0\0\x80\xbf\0\0\x40\xbf", "another number of elements"),
        CASE("\x80\x02]U\x01kaU\x01ka." ELEMENTS ELEMENTS, "or has it twice"),
        CASE("\x80\x02]U\x01la." ELEMENTS, "does not speak of"),
        CASE("\x80\x02]Na." ELEMENTS, "no short text"),
    };
    char path[FOLDER_PATH_BYTES];
    dv_array_file *file;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes b = {.count = 0};
        ADD(&b, FRONT MACHINE "\x80\x02" DICTIONARY(TENSOR) ".");
        add(&b, cases[i].rest, cases[i].count);
        assert_fails(dv_array_file_open(write_bytes(state, &b, path), &file, &error), DV_ERROR_FORMAT, cases[i].reason);
    }
    bytes big = {.count = 0};
    ADD(&big, FRONT "\x80\x02M\xe9\x03.\x80\x02}U\x0dlittle_endian\x89s.");
    assert_fails(dv_array_file_open(write_bytes(state, &big, path), &file, &error), DV_ERROR_FORMAT, "big-endian");
    bytes other = {.count = 0};
    ADD(&other, FRONT "\x80\x02M\xe8\x03.");
    assert_fails(dv_array_file_open(write_bytes(state, &other, path), &file, &error), DV_ERROR_FORMAT,
                 "another protocol than 1001");
}

/* ---- broken --------------------------------------------------------------------------------- */

static void read_golden(const char *name, bytes *b) {
    char path[FOLDER_PATH_BYTES];
    snprintf(path, sizeof path, "%s/tests/golden/torch/%s", getenv("DV_SOURCE_DIR"), name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    b->count = fread(b->data, 1, MOST_BYTES, file);
    fclose(file);
}

/* Cut anywhere, a file is refused. */
static void test_cut(void **state) {
    static const char *const names[] = {"wrapped_zip.pth", "wrapped_legacy.pth"};
    char path[FOLDER_PATH_BYTES];
    for (size_t i = 0; i < 2; i++) {
        bytes b;
        read_golden(names[i], &b);
        while (b.count-- > 0) {
            dv_array_file *file;
            dv_error error = {0};
            dv_status status = dv_array_file_open(write_bytes(state, &b, path), &file, &error);
            if (status != DV_ERROR_FORMAT && status != DV_ERROR_UNSUPPORTED)
                fail_msg("%s cut to %zu bytes: status %d", names[i], b.count, (int)status);
        }
    }
}

/* With any byte changed, a file is refused or read; sanitizers watch. */
static void test_changed(void **state) {
    static const char *const names[] = {"zip.pth", "legacy.pth"};
    char path[FOLDER_PATH_BYTES];
    for (size_t i = 0; i < 2; i++) {
        bytes b;
        read_golden(names[i], &b);
        for (size_t at = 0; at < b.count; at++) {
            dv_array_file *file = NULL;
            float values[MOST_ELEMENTS];
            b.data[at] ^= 0xff;
            if (dv_array_file_open(write_bytes(state, &b, path), &file, NULL) == DV_OK) {
                const dv_array *array;
                for (size_t a = 0; (array = dv_array_file_at(file, a)) != NULL; a++)
                    if (array->count <= MOST_ELEMENTS)
                        (void)dv_array_file_read(file, array, values, NULL);
                dv_array_file_close(file);
            }
            b.data[at] ^= 0xff;
        }
    }
}

/* Replaces the first `from` by `to`, of as many bytes. */
static void change(bytes *b, const char *from, const char *to, size_t count, bool all) {
    for (size_t at = 0; at + count <= b->count; at++)
        if (memcmp(b->data + at, from, count) == 0) {
            memcpy(b->data + at, to, count);
            if (!all)
                return;
        }
}

static void test_bad_archives(void **state) {
    static const struct {
        const char *from, *to;
        size_t count;
        bool all;
        const char *reason;
    } cases[] = {
        {"PK\5\6", "PK\5\5", 4, false, "has no end: it was cut off"},
        {"PK\1\2", "PK\1\1", 4, false, "the directory of its archive is damaged"},
        {"zip/data/1", "zip/data/0", 10, true, "two records of one name"},
        {"zip/data/1", "zip/data/y", 10, true, "a tensor's storage is not there"},
        {"zip/data.pkl", "zip/data.pkx", 12, true, "has no data.pkl"},
        {"PK\1\2\0\0\0\0\x08\x08\0\0", "PK\1\2\0\0\0\0\x08\x08\x08\0", 12, false,
         "data.pkl is compressed, which torch.save"},
        {"PK\1\2\0\0\0\0\x08\x08\0\0", "PK\1\2\0\0\0\0\x09\x08\0\0", 12, false, "data.pkl is encrypted"},
    };
    char path[FOLDER_PATH_BYTES];
    dv_array_file *file;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bytes b;
        read_golden("zip.pth", &b);
        change(&b, cases[i].from, cases[i].to, cases[i].count, cases[i].all);
        assert_fails(dv_array_file_open(write_bytes(state, &b, path), &file, &error), DV_ERROR_FORMAT, cases[i].reason);
    }
}

/* Files of other kinds. */
static void test_foreign(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_array_file *file;
    bytes tar = {.count = 512}, pickle = {.count = 0};
    memcpy(tar.data + 257, "ustar  ", 8);
    assert_fails(dv_array_file_open(write_bytes(state, &tar, path), &file, &error), DV_ERROR_UNSUPPORTED,
                 "is a tar archive, as PyTorch wrote them until version 0.1.1: load it with PyTorch");
    ADD(&pickle, "\x80\x03}q\x00.");
    assert_fails(dv_array_file_open(write_bytes(state, &pickle, path), &file, &error), DV_ERROR_UNSUPPORTED,
                 "is a pickle that torch.save did not write: save weights alone");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_strides),
        cmocka_unit_test(test_wrapped),
        cmocka_unit_test(test_old_dense_names),
        cmocka_unit_test(test_refused),
        cmocka_unit_test_setup_teardown(test_old_forms, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_bad_pickles, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_bad_storages, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_cut, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_changed, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_bad_archives, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_foreign, folder_new, folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
