/* safetensors: what is written is read again, files of other programs are read, and bad ones are told apart by name
 * and reason. */
#include "check.h"
#include "folder.h"

#include "train/array_file.h"
#include "train/safetensors.h"

#include <math.h>
#include <sys/stat.h>

/* Writes length, header and `data`. */
static const char *make(void **state, const char *header, const void *data, size_t bytes, char *path) {
    FILE *file = fopen(folder_path(state, "made.safetensors", path), "wb");
    size_t length = strlen(header);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        fputc((int)(length >> 8 * i & 0xff), file);
    fwrite(header, 1, length, file);
    fwrite(data, 1, bytes, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void test_round_trip(void **state) {
    char path[FOLDER_PATH_BYTES];
    static float large[100000], back[100000];
    const float small[] = {1, -2.5f, INFINITY, 1e-42f, -0.0f, 3}, scalar = 7;
    for (size_t i = 0; i < 100000; i++)
        large[i] = (float)i * 0.37f;
    const dv_safetensors_source sources[] = {
        {"layer1.0.conv2.weight", 3, (const size_t[]){1, 2, 3}, small},
        {"odd \"name\" \xc3\xa9\n", 1, (const size_t[]){100000}, large},
        {"scalar", 0, NULL, &scalar},
        {"nothing", 2, (const size_t[]){0, 5}, small},
    };
    const dv_note notes[] = {{"epoch", "12"}, {"text", "a \"b\" \\ c"}};
    assert_ok(dv_safetensors_write(folder_path(state, "a", path), sources, 4, notes, 2, &error));
    dv_array_file *file;
    assert_ok(dv_array_file_open(path, &file, &error));
    for (size_t i = 0; i < 4; i++) {
        const dv_array *tensor = dv_array_file_find(file, sources[i].name);
        assert_non_null(tensor);
        assert_int_equal(tensor->rank, sources[i].rank);
        for (int d = 0; d < tensor->rank; d++)
            assert_int_equal(tensor->shape[d], sources[i].shape[d]);
        assert_string_equal(dv_array_type_name(tensor->type), "F32");
        assert_ok(dv_array_file_read(file, tensor, back, &error));
        assert_memory_equal(back, sources[i].data, tensor->count * sizeof(float));
    }
    assert_null(dv_array_file_find(file, "layer1"));
    assert_null(dv_array_file_at(file, 4));
    assert_string_equal(dv_array_file_note(file, "epoch"), "12");
    assert_string_equal(dv_array_file_note(file, "text"), "a \"b\" \\ c");
    assert_null(dv_array_file_note(file, "step"));
    dv_array_file_close(file);
    dv_array_file_close(NULL);
    assert_int_equal(folder_count(state, 0), 1); /* no temporary is left */
}

/* The arrays begin at a multiple of 64. */
static void test_alignment(void **state) {
    char path[FOLDER_PATH_BYTES], name[80] = "";
    for (size_t i = 0; i < 70; i++) {
        unsigned char length[8];
        const float one = 1;
        strcat(name, "n");
        assert_ok(dv_safetensors_write(folder_path(state, "a", path),
                                       &(dv_safetensors_source){name, 1, (const size_t[]){1}, &one}, 1, NULL, 0,
                                       &error));
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(length, 1, 8, file), 8);
        fclose(file);
        assert_int_equal((8 + length[0] + 256 * length[1]) % 64, 0);
    }
}

/* As Python's safetensors.torch.save_file writes them: compact, with other types, padded to 8. */
static void test_of_other_programs(void **state) {
    char path[FOLDER_PATH_BYTES];
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"bn1.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
                                 "\"double\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]},"
                                 "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[16,24]},"
                                 "\"half\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,28]},"
                                 "\"brain\":{\"data_offsets\":[28,32],\"shape\":[2,1],\"dtype\":\"BF16\"}}   ";
    static const unsigned char data[] = {
        5,    0,    0,    0,    0,    0,    0,    0,    /* 5 */
        0,    0,    0,    0,    0,    0,    4,    0xc0, /* -2.5 */
        0,    0,    0x80, 0x3f, 0,    0,    0,    0xbf, /* 1, -0.5 */
        0x00, 0x3c, 0xff, 0x7b, 0xc0, 0x3f, 0x80, 0x7f, /* 1, 65504; 1.5, infinity */
    };
    static const struct {
        const char *name;
        float values[2];
    } expected[] = {{"double", {-2.5f}}, {"fc.weight", {1, -0.5f}}, {"half", {1, 65504}}, {"brain", {1.5f, INFINITY}}};
    dv_array_file *file;
    assert_ok(dv_array_file_open(make(state, header, data, sizeof data, path), &file, &error));
    for (size_t i = 0; i < 4; i++) {
        float values[2] = {0};
        assert_ok(dv_array_file_read(file, dv_array_file_find(file, expected[i].name), values, &error));
        assert_true(values[0] == expected[i].values[0] && values[1] == expected[i].values[1]);
    }
    float value;
    assert_fails(dv_array_file_read(file, dv_array_file_find(file, "bn1.num_batches_tracked"), &value, &error),
                 DV_ERROR_UNSUPPORTED, "bn1.num_batches_tracked is I64");
    assert_string_equal(dv_array_file_note(file, "format"), "pt");
    dv_array_file_close(file);
    assert_ok(dv_array_file_open(make(state, "{}", "", 0, path), &file, &error));
    assert_null(dv_array_file_at(file, 0));
    assert_null(dv_array_file_find(file, "a"));
    dv_array_file_close(file);
}

#define TENSOR(type, shape, offsets) "{\"a\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define OTHER(offsets) ",\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" offsets "}}"
#define BYTES_OF_A "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}"

static void test_bad_headers(void **state) {
    static const struct {
        const char *header;
        size_t bytes;
        const char *reason;
    } cases[] = {
        {"", 0, "does not begin with {"},
        {" {}", 0, "does not begin with {"},
        {"[]", 0, "does not begin with {"},
        {"{\"a\":1}", 0, "an object should begin here, at byte 5"},
        {"{\"a\":{}}", 0, "each once"},
        {"{} x", 0, "something follows the end"},
        {"{", 0, "at byte 1"},
        {"{\"a", 0, "the string has no end"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "each once"},
        {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "each once"},
        {TENSOR("F31", "[1]", "[0,4]"), 4, "dtype that is not known"},
        {TENSOR("F32", "[1]", "[0]"), 4, "two numbers"},
        {TENSOR("F32", "[1]", "[0,4,8]"), 4, "two numbers"},
        {TENSOR("F32", "[1]", "[0,-4]"), 4, "a whole number"},
        {TENSOR("F32", "[1.0]", "[0,4]"), 4, "not whole"},
        {TENSOR("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, "too many dimensions"},
        {TENSOR("F32", "[4294967296,4294967296]", "[0,4]"), 4, "overflows"},
        {TENSOR("F32", "[4611686018427387905]", "[0,4]"), 4, "has other bytes"},
        {TENSOR("F32", "[18446744073709551616]", "[0,4]"), 4, "too large"},
        {TENSOR("F32", "[2]", "[0,4]"), 4, "a has other bytes than its shape takes"},
        {TENSOR("F32", "[2]", "[4,12]"), 12, "leaves a hole"},
        {TENSOR("F32", "[2]", "[8,0]"), 8, "a overlaps another tensor or leaves a hole"},
        {TENSOR("F32", "[2]", "[0,8]"), 7, "a ends behind the end of the file"},
        {TENSOR("F32", "[2]", "[0,8]"), 9, "belong to no tensor"},
        {BYTES_OF_A OTHER("[3,5]"), 5, "b overlaps"},
        {BYTES_OF_A OTHER("[5,7]"), 7, "leaves a hole"},
        {BYTES_OF_A OTHER("[4,7]"), 7, "b has other bytes"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
         2, "two tensors a"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "a string should begin here"},
    };
    char path[FOLDER_PATH_BYTES], zeros[16] = {0};
    dv_array_file *file;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make(state, cases[i].header, zeros, cases[i].bytes, path);
        assert_fails(dv_array_file_open(path, &file, &error), DV_ERROR_FORMAT, cases[i].reason);
        assert_fails(dv_array_file_open(path, &file, &error), DV_ERROR_FORMAT, "made.safetensors is no good");
    }
}

/* Cut anywhere, a file is refused. */
static void test_cut(void **state) {
    char path[FOLDER_PATH_BYTES];
    const float values[] = {1, 2, 3};
    dv_array_file *file;
    struct stat status;
    const dv_safetensors_source source = {"a", 1, (const size_t[]){3}, values};
    assert_ok(dv_safetensors_write(folder_path(state, "a", path), &source, 1, NULL, 0, &error));
    assert_int_equal(stat(path, &status), 0);
    for (off_t bytes = status.st_size; bytes-- > 0;) {
        assert_int_equal(truncate(path, bytes), 0);
        assert_fails(dv_array_file_open(path, &file, &error), DV_ERROR_FORMAT, "a is no good safetensors file: ");
    }
    assert_fails(dv_array_file_open(path, &file, &error), DV_ERROR_FORMAT, "it is empty");
}

static void test_foreign(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_array_file *file;
    FILE *other = fopen(folder_path(state, "other", path), "wb");
    assert_non_null(other);
    fputs("GIF89a, for example", other);
    fclose(other);
    assert_fails(dv_array_file_open(path, &file, &error), DV_ERROR_FORMAT, "no length of a header");
    assert_fails(dv_array_file_open(*state, &file, &error), DV_ERROR_IO, "Is a directory");
    assert_fails(dv_array_file_open("/dev/null", &file, &error), DV_ERROR_IO, "no regular file");
    assert_fails(dv_array_file_open(folder_path(state, "missing", path), &file, &error), DV_ERROR_IO,
                 "No such file or directory");
}

static void test_full_disk(void **state) {
    const float values[] = {1, 2, 3};
    const dv_safetensors_source source = {"a", 1, (const size_t[]){3}, values};
    (void)state;
    assert_fails(dv_safetensors_write("/dev/full", &source, 1, NULL, 0, &error), DV_ERROR_IO,
                 "No space left on device");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_alignment, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_of_other_programs, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_bad_headers, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_cut, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_foreign, folder_new, folder_free),
        cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
