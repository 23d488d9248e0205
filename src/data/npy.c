/* Reading and writing .npy files.
 *
 *     offset  bytes  contents
 *     0       6      0x93 "NUMPY"
 *     6       2      version: major, minor
 *     8       2      length of the header, little-endian (4 bytes from version 2 on)
 *     10 (12) ...    the header: a Python dictionary in ASCII (UTF-8 in version 3), padded with spaces
 *     ...     ...    the elements
 *
 * The dictionary has exactly the keys descr, fortran_order and shape, in any order. Files come from
 * anywhere, so nothing in them is believed before it is checked, least of all a length. */
#include <division/tools/npy.h>

#include "base/file.h"
#include "base/status.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAGIC_BYTES = 6,
    SHORT_PREAMBLE = 10, /* bytes before the header of version 1 */
    LONG_PREAMBLE = 12,  /* and of the later ones */
    MAX_HEADER_BYTES = 1 << 16,
    MAX_WORD_BYTES = 32,
    DATA_ALIGNMENT = 64
};

static const char magic[] = "\x93NUMPY";

/* ---- the dictionary ------------------------------------------------------------------------ */

/* A position in the header. */
typedef struct reader {
    const char *at, *end;
    const char *name; /* of the file */
    dv_error *error;
} reader;

/* What the dictionary says. */
typedef struct header {
    char descr[MAX_WORD_BYTES];
    int fortran_order;
    int rank;
    uint64_t shape[DV_NPY_MAX_RANK];
} header;

static dv_status malformed(const reader *input, const char *detail) {
    return dv_fail(input->error, DV_ERROR_FORMAT, "%s: its header is damaged (%s): save it again with numpy.save",
                   input->name, detail);
}

static void skip_space(reader *input) {
    while (input->at < input->end && memchr(" \t\r\n", *input->at, 4) != NULL)
        input->at++;
}

/* True, and past it, if `character` comes next. */
static int accept(reader *input, char character) {
    skip_space(input);
    if (input->at == input->end || *input->at != character)
        return 0;
    input->at++;
    return 1;
}

/* Reads a string in single or double quotes. None that belongs here has an escape in it. */
static dv_status read_string(reader *input, char word[MAX_WORD_BYTES]) {
    char quote = accept(input, '\'') ? '\'' : '"';
    if (quote == '"' && !accept(input, '"'))
        return malformed(input, "a string was expected");
    size_t length = 0;
    while (input->at < input->end && *input->at != quote) {
        if (*input->at < ' ' || *input->at > '~' || *input->at == '\\' || length == MAX_WORD_BYTES - 1)
            return malformed(input, "a string in it is too long or not plain");
        word[length++] = *input->at++;
    }
    word[length] = '\0';
    return accept(input, quote) ? DV_OK : malformed(input, "a string in it has no end");
}

static dv_status read_descr(reader *input, header *result) {
    skip_space(input);
    if (input->at < input->end && *input->at == '[')
        return dv_fail(input->error, DV_ERROR_UNSUPPORTED,
                       "%s: structured arrays are not supported: save one field with .astype('<f4')", input->name);
    return read_string(input, result->descr);
}

static dv_status read_fortran_order(reader *input, header *result) {
    static const char *const words[] = {"False", "True"};
    skip_space(input);
    for (int i = 0; i < 2; i++) {
        size_t length = strlen(words[i]);
        if ((size_t)(input->end - input->at) < length || memcmp(input->at, words[i], length) != 0)
            continue;
        input->at += length;
        result->fortran_order = i;
        return DV_OK;
    }
    return malformed(input, "fortran_order is neither True nor False");
}

/* Reads one length of the shape; old Pythons put an L behind it. */
static dv_status read_length(reader *input, uint64_t *length) {
    skip_space(input);
    const char *start = input->at;
    uint64_t value = 0;
    for (; input->at < input->end && *input->at >= '0' && *input->at <= '9'; input->at++) {
        uint64_t digit = (uint64_t)(*input->at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return malformed(input, "a length in its shape is too large");
        value = value * 10 + digit;
    }
    if (input->at == start)
        return malformed(input, "its shape is not a tuple of lengths");
    if (input->at < input->end && *input->at == 'L')
        input->at++;
    *length = value;
    return DV_OK;
}

/* Reads "()", "(3,)", "(3, 4)". */
static dv_status read_shape(reader *input, header *result) {
    int comma = 1;
    if (!accept(input, '('))
        return malformed(input, "its shape is not a tuple");
    while (!accept(input, ')')) {
        uint64_t length = 0;
        if (!comma)
            return malformed(input, "its shape lacks a comma");
        DV_TRY(read_length(input, &length));
        if (result->rank == DV_NPY_MAX_RANK)
            return dv_fail(input->error, DV_ERROR_UNSUPPORTED, "%s: more than %d axes: merge some with .reshape(...)",
                           input->name, DV_NPY_MAX_RANK);
        result->shape[result->rank++] = length;
        comma = accept(input, ',');
    }
    if (result->rank == 1 && !comma)
        return malformed(input, "its shape is a number, not a tuple");
    return DV_OK;
}

static const struct {
    const char *name;
    dv_status (*read)(reader *input, header *result);
} keys[] = {{"descr", read_descr}, {"fortran_order", read_fortran_order}, {"shape", read_shape}};

enum { KEY_COUNT = sizeof keys / sizeof *keys };

/* Reads one "key: value"; `seen` has a bit for each key that was there. */
static dv_status read_entry(reader *input, header *result, unsigned *seen) {
    char word[MAX_WORD_BYTES];
    DV_TRY(read_string(input, word));
    if (!accept(input, ':'))
        return malformed(input, "a colon is missing");
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (strcmp(word, keys[i].name) != 0)
            continue;
        if (*seen & 1u << i)
            return malformed(input, "a key is there twice");
        *seen |= 1u << i;
        return keys[i].read(input, result);
    }
    return malformed(input, "it has an unknown key");
}

static dv_status read_dictionary(reader *input, header *result) {
    unsigned seen = 0;
    int comma = 1;
    if (!accept(input, '{'))
        return malformed(input, "it is no dictionary");
    while (!accept(input, '}')) {
        if (!comma)
            return malformed(input, "a comma is missing");
        DV_TRY(read_entry(input, result, &seen));
        comma = accept(input, ',');
    }
    if (seen != (1u << KEY_COUNT) - 1)
        return malformed(input, "a key is missing");
    skip_space(input);
    return input->at == input->end ? DV_OK : malformed(input, "something follows the dictionary");
}

/* ---- what it means ------------------------------------------------------------------------- */

/* Types as NumPy writes them, and why those that are not taken are not. */
static const struct {
    const char *descr;
    dv_type type;
    const char *refusal;
} types[] = {
    {"<f4", DV_F32, NULL},
    {"<f2", DV_F16, NULL},
    {"<f8", DV_F32, "64-bit floats are"},
    {">f4", DV_F32, "big-endian numbers are"},
    {">f2", DV_F32, "big-endian numbers are"},
    {">f8", DV_F32, "big-endian 64-bit floats are"},
    {"|O", DV_F32, "arrays of Python objects are"},
};

static dv_status find_type(const reader *input, const char *descr, dv_type *type) {
    const char *refusal = "arrays of this type are";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(descr, types[i].descr) != 0)
            continue;
        *type = types[i].type;
        refusal = types[i].refusal;
    }
    if (refusal == NULL)
        return DV_OK;
    return dv_fail(input->error, DV_ERROR_UNSUPPORTED, "%s: dtype '%s': %s not supported: save it with .astype('<f4')",
                   input->name, descr, refusal);
}

/* Multiplies the lengths of the axes into `array->bytes`. */
static dv_status find_size(const reader *input, const header *found, dv_npy *array) {
    array->bytes = dv_type_bytes(array->type);
    for (int i = 0; i < found->rank; i++) {
        if (found->shape[i] == 0)
            return dv_fail(input->error, DV_ERROR_UNSUPPORTED,
                           "%s: the array is empty (axis %d has length 0): save one with elements", input->name, i);
        if (found->shape[i] > SIZE_MAX / 2 / array->bytes)
            return malformed(input, "its shape has more elements than memory has addresses");
        array->shape[i] = (size_t)found->shape[i];
        array->bytes *= array->shape[i];
    }
    array->rank = found->rank;
    return DV_OK;
}

/* Reads the header's `length` characters into everything of `array` but its data. */
static dv_status parse_header(const char *name, const char *text, size_t length, dv_npy *array, dv_error *error) {
    reader input = {text, text + length, name, error};
    header found = {.rank = 0};
    DV_TRY(read_dictionary(&input, &found));
    DV_TRY(find_type(&input, found.descr, &array->type));
    if (found.fortran_order)
        return dv_fail(error, DV_ERROR_UNSUPPORTED,
                       "%s: Fortran order is not supported: save numpy.ascontiguousarray(array)", name);
    return find_size(&input, &found, array);
}

static dv_status truncated(const char *name, dv_error *error) {
    return dv_fail(error, DV_ERROR_FORMAT, "%s: the file ends before its array does: it was cut, make it again", name);
}

/* Checks the first SHORT_PREAMBLE bytes and finds how many there are before the header. */
static dv_status parse_magic(const char *name, const unsigned char *start, size_t *preamble, dv_error *error) {
    if (memcmp(start, magic, MAGIC_BYTES) != 0)
        return dv_fail(error, DV_ERROR_FORMAT, "%s: not a .npy file: save the array with numpy.save", name);
    if (start[6] < 1 || start[6] > 3 || start[7] != 0)
        return dv_fail(error, DV_ERROR_UNSUPPORTED,
                       "%s: .npy version %d.%d is unknown: save it with version 1.0 to 3.0", name, start[6], start[7]);
    *preamble = start[6] == 1 ? SHORT_PREAMBLE : LONG_PREAMBLE;
    return DV_OK;
}

/* Finds the length of the header behind a preamble that parse_magic took. */
static dv_status parse_length(const char *name, const unsigned char *start, size_t preamble, size_t *length,
                              dv_error *error) {
    *length = 0;
    for (size_t i = preamble; i > 8; i--)
        *length = *length << 8 | start[i - 1];
    if (*length > MAX_HEADER_BYTES)
        return dv_fail(error, DV_ERROR_FORMAT, "%s: its header claims %zu bytes: it is damaged, make it again", name,
                       *length);
    return DV_OK;
}

static dv_status trailing(const char *name, dv_error *error) {
    return dv_fail(error, DV_ERROR_FORMAT, "%s: something follows the array: save one array per file", name);
}

dv_status dv_npy_parse(const char *name, const void *memory, size_t bytes, dv_npy *array, dv_error *error) {
    const unsigned char *start = memory;
    size_t preamble, length;
    if (name == NULL || memory == NULL || array == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "dv_npy_parse: a pointer is NULL: give all three");
    dv_npy found = {.rank = 0};
    *array = found;
    if (bytes < SHORT_PREAMBLE)
        return dv_fail(error, DV_ERROR_FORMAT, "%s: not a .npy file: save the array with numpy.save", name);
    DV_TRY(parse_magic(name, start, &preamble, error));
    if (bytes < preamble)
        return truncated(name, error);
    DV_TRY(parse_length(name, start, preamble, &length, error));
    if (bytes - preamble < length)
        return truncated(name, error);
    DV_TRY(parse_header(name, (const char *)start + preamble, length, &found, error));
    if (bytes - preamble - length < found.bytes)
        return truncated(name, error);
    if (bytes - preamble - length > found.bytes)
        return trailing(name, error);
    found.data = (void *)(uintptr_t)(start + preamble + length); /* documented as not to be written */
    *array = found;
    return DV_OK;
}

/* ---- files --------------------------------------------------------------------------------- */

/* Reads `bytes` from the stream; fewer are a failure. */
static dv_status read_bytes(const char *name, FILE *stream, void *dst, size_t bytes, dv_error *error) {
    if (fread(dst, 1, bytes, stream) == bytes)
        return DV_OK;
    if (ferror(stream))
        return dv_fail(error, DV_ERROR_IO, "could not read %s: %s: check the path and the device", name,
                       strerror(errno));
    return truncated(name, error);
}

/* Reads everything before the elements, and what it says into `array`. */
static dv_status read_header(const char *name, FILE *stream, dv_npy *array, dv_error *error) {
    unsigned char start[LONG_PREAMBLE];
    size_t preamble, length;
    DV_TRY(read_bytes(name, stream, start, SHORT_PREAMBLE, error));
    DV_TRY(parse_magic(name, start, &preamble, error));
    DV_TRY(read_bytes(name, stream, start + SHORT_PREAMBLE, preamble - SHORT_PREAMBLE, error));
    DV_TRY(parse_length(name, start, preamble, &length, error));
    char *text = malloc(length + 1);
    if (text == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory for its header: free some", name);
    dv_status status = read_bytes(name, stream, text, length, error);
    if (status == DV_OK)
        status = parse_header(name, text, length, array, error);
    free(text);
    return status;
}

/* Reads the elements, which must be the last thing in the stream. */
static dv_status read_elements(const char *name, FILE *stream, dv_npy *array, dv_error *error) {
    size_t room = array->bytes + (DATA_ALIGNMENT - array->bytes % DATA_ALIGNMENT) % DATA_ALIGNMENT;
    array->data = aligned_alloc(DATA_ALIGNMENT, room);
    if (array->data == NULL)
        return dv_fail(error, DV_ERROR_MEMORY, "%s: no memory for its %zu bytes: free some", name, array->bytes);
    DV_TRY(read_bytes(name, stream, array->data, array->bytes, error));
    return fgetc(stream) == EOF ? DV_OK : trailing(name, error);
}

/* Fails if the rest of a file that can be measured is shorter than the array, before memory is asked
 * for an array that isn't there. */
static dv_status check_rest(const char *name, FILE *stream, const dv_npy *array, dv_error *error) {
    long here = ftell(stream);
    if (here < 0 || fseek(stream, 0, SEEK_END) != 0)
        return DV_OK; /* a pipe */
    long end = ftell(stream);
    if (fseek(stream, here, SEEK_SET) != 0 || end < here || (size_t)(end - here) < array->bytes)
        return truncated(name, error);
    return DV_OK;
}

static dv_status read_stream(const char *name, FILE *stream, dv_npy *array, dv_error *error) {
    DV_TRY(read_header(name, stream, array, error));
    DV_TRY(check_rest(name, stream, array, error));
    return read_elements(name, stream, array, error);
}

dv_status dv_npy_read(const char *path, dv_npy *array, dv_error *error) {
    if (path == NULL || array == NULL)
        return dv_fail(error, DV_ERROR_ARGUMENT, "dv_npy_read: a pointer is NULL: give both");
    *array = (dv_npy){.rank = 0};
    const char *name = dv_file_shown(path);
    FILE *stream = fopen(path, "rb");
    if (stream == NULL)
        return dv_fail(error, DV_ERROR_IO, "could not read %s: %s: check the name", name, strerror(errno));
    dv_status status = read_stream(name, stream, array, error);
    fclose(stream);
    if (status != DV_OK)
        dv_npy_free(array);
    return status;
}

/* Checks an array that is to be written: its type, and that its shape takes its bytes. */
static dv_status check_array(const char *path, const dv_npy *array, dv_error *error) {
    if (path == NULL || array == NULL || array->data == NULL || array->rank < 0 || array->rank > DV_NPY_MAX_RANK)
        return dv_fail(error, DV_ERROR_ARGUMENT, "dv_npy_write: needs a path, data, and a rank of 0 to %d",
                       DV_NPY_MAX_RANK);
    if (array->type != DV_F32 && array->type != DV_F16)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "%s: NumPy has no such type: convert to f32 first",
                       dv_file_shown(path));
    size_t bytes = dv_type_bytes(array->type);
    for (int i = 0; i < array->rank; i++) {
        if (array->shape[i] == 0 || array->shape[i] > SIZE_MAX / bytes)
            return dv_fail(error, DV_ERROR_ARGUMENT, "dv_npy_write: axis %d has an impossible length: check the shape",
                           i);
        bytes *= array->shape[i];
    }
    if (bytes != array->bytes)
        return dv_fail(error, DV_ERROR_ARGUMENT, "dv_npy_write: the shape takes %zu bytes, not %zu: make them agree",
                       bytes, array->bytes);
    return DV_OK;
}

/* Writes preamble and header, padded so that the elements begin at a multiple of DATA_ALIGNMENT. Every
 * shape there can be fits in 256 characters. */
static void write_header(FILE *stream, const dv_npy *array) {
    char text[320], shape[256] = "";
    size_t used = 0;
    for (int i = 0; i < array->rank; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%zu%s", i > 0 ? " " : "", array->shape[i],
                                 i + 1 < array->rank || array->rank == 1 ? "," : "");
    int length = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                          array->type == DV_F32 ? "<f4" : "<f2", shape);
    int pad = (DATA_ALIGNMENT - (SHORT_PREAMBLE + length + 1) % DATA_ALIGNMENT) % DATA_ALIGNMENT;
    int padded = length + pad + 1;
    fwrite(magic, 1, MAGIC_BYTES, stream);
    const unsigned char rest[] = {1, 0, (unsigned char)(padded & 255), (unsigned char)(padded >> 8)};
    fwrite(rest, 1, sizeof rest, stream);
    fprintf(stream, "%s%*s\n", text, pad, "");
}

dv_status dv_npy_write(const char *path, const dv_npy *array, dv_error *error) {
    dv_file file;
    DV_TRY(check_array(path, array, error));
    DV_TRY(dv_file_begin(&file, path, error));
    write_header(file.stream, array);
    fwrite(array->data, 1, array->bytes, file.stream); /* the commit asks ferror */
    return dv_file_commit(&file, error);
}

void dv_npy_free(dv_npy *array) {
    if (array == NULL)
        return;
    free(array->data);
    *array = (dv_npy){.rank = 0};
}
