/* .npy files: what was written is read again, and what is wrong is refused with a reason. */
#include "base/file.h"
#include "check.h"
#include "folder.h"

#include <division/tools/npy.h>
#include <sys/stat.h>

enum { FILE_BYTES = 4096 };

/* Puts together a file: preamble of a version, header, `data_bytes` zeros. Returns its size. */
static size_t make_file(unsigned char file[FILE_BYTES], int version, const char *header, size_t data_bytes) {
    size_t length = strlen(header), preamble = version == 1 ? 10 : 12;
    memset(file, 0, FILE_BYTES);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[8] = (unsigned char)(length & 255);
    file[9] = (unsigned char)(length >> 8);
    memcpy(file + preamble, header, length);
    return preamble + length + data_bytes;
}

static void test_headers_that_are_read(void **state) {
    (void)state;
    static const struct {
        int version;
        const char *header;
        dv_type type;
        int rank;
        size_t shape[3];
    } cases[] = {
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }     \n", DV_F32, 2, {2, 3}},
        {2, "{'descr': '<f2', 'fortran_order': False, 'shape': (5,), }\n", DV_F16, 1, {5}},
        {3, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3)}", DV_F32, 3, {1, 2, 3}},
        {1, "{'shape':(2,3),'fortran_order':False,'descr':'<f4'}", DV_F32, 2, {2, 3}},
        {1, " { \"descr\" : \"<f4\" ,\t\"shape\" : ( 2L , 3L , ) , \"fortran_order\" : False }\n", DV_F32, 2, {2, 3}},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", DV_F32, 0, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char file[FILE_BYTES];
        dv_npy array;
        dv_error error;
        size_t count = 1;
        for (int axis = 0; axis < cases[i].rank; axis++)
            count *= cases[i].shape[axis];
        size_t bytes = make_file(file, cases[i].version, cases[i].header, count * dv_type_bytes(cases[i].type));
        if (dv_npy_parse("a.npy", file, bytes, &array, &error) != DV_OK)
            fail_msg("%s: %s", cases[i].header, error.text);
        assert_int_equal(array.type, cases[i].type);
        assert_int_equal(array.rank, cases[i].rank);
        for (int axis = 0; axis < cases[i].rank; axis++)
            assert_int_equal(array.shape[axis], cases[i].shape[axis]);
        assert_int_equal(array.bytes, count * dv_type_bytes(cases[i].type));
        assert_ptr_equal((unsigned char *)array.data + array.bytes, file + bytes);
    }
}

/* Headers that are refused, and a word of the reason. The data is that of (2, 3) f4. */
static void test_headers_that_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *header, *reason;
        dv_status status;
    } cases[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}", "64-bit", DV_ERROR_UNSUPPORTED},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", "big-endian", DV_ERROR_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2, 3)}", "objects", DV_ERROR_UNSUPPORTED},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3)}", "'<i4'", DV_ERROR_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}", "structured", DV_ERROR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", "ascontiguousarray", DV_ERROR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}", "axis 1", DV_ERROR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,2,3)}", "8 axes", DV_ERROR_UNSUPPORTED},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "addresses", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,)}", "too large", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", "addresses", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3)}", "lengths", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6)}", "not a tuple", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 6}", "not a tuple", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", "comma", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3", "comma", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", "comma", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)} x", "follows", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False}", "key is missing", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3)}", "twice", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", "unknown key", DV_ERROR_FORMAT},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}", "fortran_order", DV_ERROR_FORMAT},
        {"{'descr' '<f4'}", "colon", DV_ERROR_FORMAT},
        {"{descr: '<f4'}", "string", DV_ERROR_FORMAT},
        {"{'descr': '<f4", "no end", DV_ERROR_FORMAT},
        {"{'descr': '<f4\"}", "no end", DV_ERROR_FORMAT},
        {"{'de\\x73cr': '<f4'}", "plain", DV_ERROR_FORMAT},
        {"{'descr': 'a string that is far longer than any of them'}", "long", DV_ERROR_FORMAT},
        {"[]", "dictionary", DV_ERROR_FORMAT},
        {"", "dictionary", DV_ERROR_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char file[FILE_BYTES];
        dv_npy array;
        dv_error error = {DV_OK, ""};
        size_t bytes = make_file(file, 1, cases[i].header, 24);
        dv_status status = dv_npy_parse("a.npy", file, bytes, &array, &error);
        if (status != cases[i].status || strstr(error.text, cases[i].reason) == NULL)
            fail_msg("%s: status %d, '%s'", cases[i].header, status, error.text);
        assert_int_equal(strncmp(error.text, "a.npy: ", 7), 0);
        assert_null(array.data);
    }
}

static const char good[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";

/* Every length but the right one. */
static void test_cut_and_trailing(void **state) {
    (void)state;
    for (int version = 1; version <= 3; version++) {
        unsigned char file[FILE_BYTES];
        dv_npy array;
        size_t bytes = make_file(file, version, good, 24);
        for (size_t length = 0; length < bytes + 8; length++) {
            unsigned char *exact = malloc(length + 1); /* so that a sanitizer sees a read past the end */
            assert_non_null(exact);
            memcpy(exact, file, length);
            dv_status status = dv_npy_parse("a.npy", exact, length, &array, NULL);
            assert_int_equal(status, length == bytes ? DV_OK : DV_ERROR_FORMAT);
            free(exact);
        }
    }
}

static void test_damaged_preambles(void **state) {
    (void)state;
    unsigned char file[FILE_BYTES];
    dv_npy array;
    dv_error error;
    size_t bytes = make_file(file, 1, good, 24);
    file[0] = 'x';
    assert_int_equal(dv_npy_parse("a.npy", file, bytes, &array, &error), DV_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "not a .npy file"));
    bytes = make_file(file, 4, good, 24);
    assert_int_equal(dv_npy_parse("a.npy", file, bytes, &array, &error), DV_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "version 4.0"));
    bytes = make_file(file, 2, good, 24);
    file[11] = 0xff; /* a header of four billion bytes */
    assert_int_equal(dv_npy_parse("a.npy", file, bytes, &array, &error), DV_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "claims"));
    assert_int_equal(dv_npy_parse(NULL, file, bytes, &array, &error), DV_ERROR_ARGUMENT);
    assert_int_equal(dv_npy_parse("a.npy", NULL, bytes, &array, &error), DV_ERROR_ARGUMENT);
}

/* Writes an array and compares what is read again, from the file and from memory. */
static void round_trip(const char *path, const dv_npy *array) {
    dv_npy again, parsed;
    void *file = NULL;
    size_t bytes = 0;
    assert_ok(dv_npy_write(path, array, &error));
    assert_ok(dv_npy_read(path, &again, &error));
    assert_ok(dv_file_read(path, 1 << 20, &file, &bytes, &error));
    assert_ok(dv_npy_parse(path, file, bytes, &parsed, &error));
    assert_int_equal(again.type, array->type);
    assert_int_equal(again.rank, array->rank);
    assert_int_equal(again.bytes, array->bytes);
    assert_int_equal((uintptr_t)again.data % 64, 0);
    assert_int_equal((bytes - array->bytes) % 64, 0); /* where the elements start */
    for (int i = 0; i < array->rank; i++)
        assert_int_equal(again.shape[i], array->shape[i]);
    assert_memory_equal(again.data, array->data, array->bytes);
    assert_memory_equal(parsed.data, array->data, array->bytes);
    free(file);
    dv_npy_free(&again);
    assert_null(again.data);
}

static void test_round_trips(void **state) {
    static const size_t shapes[][DV_NPY_MAX_RANK] = {
        {1, 1, 1, 1, 1, 1, 1, 1}, {3, 2, 5, 1, 2, 1, 3, 1}, {17, 7, 1, 1, 1, 1, 1, 1}};
    char path[FOLDER_PATH_BYTES];
    uint8_t data[1024];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37);
    folder_path(state, "a.npy", path);
    for (int rank = 0; rank <= DV_NPY_MAX_RANK; rank++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            dv_npy array = {.type = i % 2 ? DV_F16 : DV_F32, .rank = rank, .data = data};
            array.bytes = dv_type_bytes(array.type);
            for (int axis = 0; axis < rank; axis++)
                array.bytes *= array.shape[axis] = shapes[i][axis];
            round_trip(path, &array);
        }
    }
    assert_int_equal(folder_count(state, 0), 1);
}

static void test_longest_header(void **state) {
    char path[FOLDER_PATH_BYTES];
    float data[1] = {1};
    dv_npy array = {.type = DV_F32, .rank = 8, .data = data, .bytes = 4, .shape = {1, 1, 1, 1, 1, 1, 1, 1}};
    round_trip(folder_path(state, "a.npy", path), &array);
}

static void test_write_refuses(void **state) {
    char path[FOLDER_PATH_BYTES];
    float data[6] = {0};
    dv_npy good_array = {.type = DV_F32, .rank = 2, .shape = {2, 3}, .data = data, .bytes = sizeof data}, array;
    folder_path(state, "a.npy", path);
    array = good_array, array.type = DV_BF16;
    assert_int_equal(dv_npy_write(path, &array, NULL), DV_ERROR_UNSUPPORTED);
    array = good_array, array.bytes = 20;
    assert_int_equal(dv_npy_write(path, &array, NULL), DV_ERROR_ARGUMENT);
    array = good_array, array.shape[1] = SIZE_MAX;
    assert_int_equal(dv_npy_write(path, &array, NULL), DV_ERROR_ARGUMENT);
    array = good_array, array.rank = 9;
    assert_int_equal(dv_npy_write(path, &array, NULL), DV_ERROR_ARGUMENT);
    array = good_array, array.data = NULL;
    assert_int_equal(dv_npy_write(path, &array, NULL), DV_ERROR_ARGUMENT);
    assert_int_equal(folder_count(state, 0), 0);
}

/* Files are refused as memory is. A shape of many terabytes asks for no memory if the file is short. */
static void test_read_refuses(void **state) {
    static const char vast[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }\n";
    char path[FOLDER_PATH_BYTES];
    unsigned char file[FILE_BYTES];
    dv_npy array;
    dv_error error;
    folder_path(state, "a.npy", path);
    assert_int_equal(dv_npy_read(path, &array, &error), DV_ERROR_IO);
    assert_non_null(strstr(error.text, "a.npy: No such file"));
    for (int version = 1; version <= 3; version++) {
        size_t bytes = make_file(file, version, good, 24);
        for (size_t length = 0; length < bytes + 8; length++) {
            assert_int_equal(dv_file_replace(path, file, length, NULL), DV_OK);
            assert_int_equal(dv_npy_read(path, &array, &error), length == bytes ? DV_OK : DV_ERROR_FORMAT);
            dv_npy_free(&array);
        }
    }
    assert_int_equal(dv_file_replace(path, file, make_file(file, 1, vast, 24), NULL), DV_OK);
    assert_int_equal(dv_npy_read(path, &array, &error), DV_ERROR_FORMAT);
    assert_non_null(strstr(error.text, "ends before"));
    assert_int_equal(dv_npy_read(*state, &array, &error), DV_ERROR_IO); /* a folder */
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_new, folder_free)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_that_are_read),
        cmocka_unit_test(test_headers_that_are_refused),
        cmocka_unit_test(test_cut_and_trailing),
        cmocka_unit_test(test_damaged_preambles),
        IN_FOLDER(test_round_trips),
        IN_FOLDER(test_longest_header),
        IN_FOLDER(test_write_refuses),
        IN_FOLDER(test_read_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
