/* ONNX files, read by a small reader of protocol buffers: every node takes what is there by then, every array is as
 * long as its shape says, and every kind of layer has its node. tests/onnx.sh runs such files where ONNX Runtime is. */
#include "check.h"
#include "folder.h"

#include "base/file.h"
#include "export/protobuf.h"

#include <division/models.h>
#include <division/onnx.h>

/* ---- reading ------------------------------------------------------------------------------- */

typedef struct reader {
    const uint8_t *at, *end;
} reader;

typedef struct field {
    unsigned number;
    uint64_t value; /* of a varint, or the length */
    reader inside;  /* of bytes, text and messages */
} field;

static uint64_t read_varint(reader *r) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(r->at < r->end && shift < 64);
        value |= (uint64_t)(*r->at & 0x7f) << shift;
        if (!(*r->at++ & 0x80))
            return value;
    }
}

static int next(reader *r, field *f) {
    if (r->at == r->end)
        return 0;
    uint64_t key = read_varint(r);
    *f = (field){.number = (unsigned)(key >> 3)};
    if ((key & 7) == 5) {
        r->at += 4;
        assert_true(r->at <= r->end);
        return 1;
    }
    f->value = read_varint(r);
    if ((key & 7) == 2) {
        assert_true(f->value <= (uint64_t)(r->end - r->at));
        f->inside = (reader){r->at, r->at + f->value};
        r->at += f->value;
    }
    return 1;
}

/* ---- names --------------------------------------------------------------------------------- */

enum { MOST_NAMES = 4096, NAME_BYTES = 160 };

typedef struct names {
    size_t count;
    char at[MOST_NAMES][NAME_BYTES];
} names;

static names known;

static void text_of(const field *f, char text[NAME_BYTES]) {
    assert_true(f->value < NAME_BYTES);
    memcpy(text, f->inside.at, f->value);
    text[f->value] = '\0';
}

static int knows(const char *name) {
    for (size_t i = 0; i < known.count; i++)
        if (strcmp(known.at[i], name) == 0)
            return 1;
    return 0;
}

static void learn(const char *name) {
    if (knows(name))
        fail_msg("%s is made twice", name);
    assert_true(known.count < MOST_NAMES);
    strcpy(known.at[known.count++], name);
}

/* ---- checks -------------------------------------------------------------------------------- */

typedef struct counts {
    size_t nodes, arrays, numbers, notes;
    char operations[2048]; /* each once, with blanks around */
} counts;

static void check_array(reader r, counts *c) {
    field f;
    char name[NAME_BYTES] = "";
    uint64_t elements = 1, bytes = 0;
    while (next(&r, &f)) {
        elements *= f.number == 1 ? f.value : 1;
        bytes = f.number == 9 ? f.value : bytes;
        if (f.number == 8)
            text_of(&f, name);
    }
    assert_int_equal(bytes, 4 * elements);
    learn(name);
    c->arrays++;
    c->numbers += elements;
}

static void check_node(reader r, counts *c) {
    field f;
    char name[NAME_BYTES], output[NAME_BYTES] = "";
    while (next(&r, &f)) {
        if (f.number == 1) {
            text_of(&f, name);
            if (!knows(name))
                fail_msg("%s is taken before it is made", name);
        }
        if (f.number == 2)
            text_of(&f, output);
        if (f.number == 4) {
            text_of(&f, name);
            strcat(name, " ");
            if (strstr(c->operations, name) == NULL)
                strcat(c->operations, name);
        }
    }
    learn(output);
    c->nodes++;
}

/* The name of an input or output. */
static const char *end_name(reader r, char name[NAME_BYTES]) {
    field f;
    while (next(&r, &f))
        if (f.number == 1)
            text_of(&f, name);
    return name;
}

/* Arrays and inputs first, then nodes in their order, then outputs. */
static void check_graph(reader whole, counts *c) {
    static const unsigned order[] = {5, 11, 1, 12};
    char name[NAME_BYTES];
    for (size_t i = 0; i < 4; i++) {
        reader r = whole;
        field f;
        while (next(&r, &f)) {
            if (f.number != order[i])
                continue;
            if (f.number == 5)
                check_array(f.inside, c);
            else if (f.number == 1)
                check_node(f.inside, c);
            else if (f.number == 11)
                learn(end_name(f.inside, name));
            else
                assert_true(knows(end_name(f.inside, name)));
        }
    }
    assert_true(knows("images") && knows("logits"));
}

static counts check_file(const char *path) {
    void *data;
    size_t bytes;
    counts c = {0};
    field f;
    known.count = 0;
    assert_ok(dv_file_read(path, (size_t)1 << 30, &data, &bytes, &error));
    reader r = {data, (const uint8_t *)data + bytes};
    while (next(&r, &f)) {
        if (f.number == 7)
            check_graph(f.inside, &c);
        c.notes += f.number == 14;
    }
    free(data);
    return c;
}

/* ---- networks ------------------------------------------------------------------------------ */

static counts export_graph(void **state, dv_graph *graph, int fold) {
    static const dv_note notes[] = {{"one", "1"}, {"two", "2"}};
    char path[FOLDER_PATH_BYTES];
    dv_plan_options options = dv_plan_options_default();
    dv_onnx_options onnx = dv_onnx_options_default();
    dv_plan *plan;
    dv_run *run;
    options.method = "none";
    options.inference = 1;
    onnx.fold = fold;
    onnx.notes = notes;
    onnx.note_count = 2;
    assert_ok(dv_plan_new(graph, &options, &plan, &error));
    assert_ok(dv_run_new(plan, 1, &run, &error));
    assert_ok(dv_onnx_write(folder_path(state, "model.onnx", path), run, &onnx, &error));
    dv_run_free(run);
    dv_plan_free(plan);
    counts c = check_file(path);
    assert_int_equal(c.notes, 2);
    return c;
}

static void test_models(void **state) {
    static const char *const models[] = {"resnet20", "resnet18", "resnet29_preact", "densenet121_cifar"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        dv_graph *graph;
        assert_ok(dv_model_build(models[i], DV_F32, 1, 10, 32, &graph, &error));
        counts plain = export_graph(state, graph, 0), folded = export_graph(state, graph, 1);
        assert_true(folded.arrays < plain.arrays && folded.numbers < plain.numbers);
        assert_non_null(strstr(plain.operations, "BatchNormalization "));
        assert_non_null(strstr(plain.operations, "Gemm "));
        dv_graph_free(graph);
    }
}

/* Every kind of layer, as a U-Net has them. */
static void test_kinds(void **state) {
    static const char *const wanted[] = {"Conv ", "ConvTranspose ", "BatchNormalization ", "Relu ",     "LeakyRelu ",
                                         "Sum ",  "MaxPool ",       "AveragePool ",        "Identity ", "Concat "};
    const dv_convolution_options convolution = {.channels = 4,
                                                .window = dv_window_square(3, 1, 1),
                                                .groups = 1,
                                                .bias = 1},
                                 up = {.channels = 4, .window = dv_window_square(2, 2, 0), .groups = 1};
    const dv_pooling_options pooling = {.window = dv_window_square(2, 2, 0)};
    dv_graph *graph;
    assert_ok(dv_graph_new(DV_F32, 2, &graph, &error));
    dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){8, 8});
    x = dv_graph_batch_norm(graph, "norm", dv_graph_convolution(graph, "first", x, &convolution));
    dv_value skip = dv_graph_relu(graph, "relu", x);
    x = dv_graph_sum(graph, "sum", dv_graph_max_pooling(graph, "most", skip, &pooling),
                     dv_graph_average_pooling(graph, "mean", skip, &pooling));
    x = dv_graph_dropout(graph, "drop", dv_graph_leaky_relu(graph, "leaky", x, 0.1f), 0.5f);
    x = dv_graph_transposed_convolution(graph, "up", x, &up);
    x = dv_graph_concatenation(graph, "join", (const dv_value[]){x, skip}, 2);
    assert_ok(dv_graph_finish(graph, dv_graph_convolution(graph, "last", x, &convolution), &error));
    counts c = export_graph(state, graph, 0);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (strstr(c.operations, wanted[i]) == NULL)
            fail_msg("no %s among %s", wanted[i], c.operations);
    assert_null(strstr(export_graph(state, graph, 1).operations, "BatchNormalization"));
    dv_graph_free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_models, folder_new, folder_free),
        cmocka_unit_test_setup_teardown(test_kinds, folder_new, folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
