/* The parts of a report: numbers in their units, axes, labels, escaped text, tables, names of methods, event files. */
#include "check.h"
#include "folder.h"

#include "report/axis.h"
#include "report/crc32c.h"
#include "report/labels.h"
#include "report/method_text.h"
#include "report/table.h"
#include "report/tensorboard.h"

#include <division/tools/report.h>
#include <math.h>
#include <stdint.h>
#include <sys/stat.h>

#define SPACE "\xc2\xa0"

/* ---- numbers ------------------------------------------------------------------------------- */

static void test_units(void **state) {
    (void)state;
    static const struct {
        dv_unit unit;
        double number;
        const char *text;
    } cases[] = {
        {DV_UNIT_BYTES, 0, "0" SPACE "B"},
        {DV_UNIT_BYTES, 999, "999" SPACE "B"},
        {DV_UNIT_BYTES, 999.5, "1.0" SPACE "kB"},
        {DV_UNIT_BYTES, 99949, "99.9" SPACE "kB"},
        {DV_UNIT_BYTES, 99960, "100" SPACE "kB"},
        {DV_UNIT_BYTES, 3.4e9, "3.4" SPACE "GB"},
        {DV_UNIT_PERCENT, 88.449999, "88.45" SPACE "%"},
        {DV_UNIT_PERCENT, 100, "100.00" SPACE "%"},
        {DV_UNIT_TIMES, 1, "1.00" SPACE "\xc3\x97"},
        {DV_UNIT_TIMES, 10.96, "11.0" SPACE "\xc3\x97"},
        {DV_UNIT_SPEED, 315.28, "315" SPACE "images/s"},
        {DV_UNIT_COUNT, 128, "128"},
        {DV_UNIT_NONE, 0, "0"},
        {DV_UNIT_NONE, -0.25, "-0.250"},
        {DV_UNIT_NONE, 0.00012345, "0.000123"},
        {DV_UNIT_NONE, 3.889e-05, "3.89e-5"},
        {DV_UNIT_NONE, 1e300, "1e300"},
        {DV_UNIT_BYTES, NAN, "\xe2\x80\x93"},
        {DV_UNIT_PERCENT, NAN, "\xe2\x80\x93"},
    };
    char text[DV_UNIT_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(dv_unit_text(cases[i].unit, cases[i].number, text), cases[i].text);
    assert_string_equal(dv_decimal_text(1.50, 2, text), "1.5");
    assert_string_equal(dv_decimal_text(-0.001, 2, text), "0");
    assert_string_equal(dv_exact_text(0.1, text), "0.1");
    assert_string_equal(dv_exact_text(NAN, text), "");
}

/* Marks are round, inside of the axis, and both ends of the range are on it. */
static void expect_axis(dv_range range, dv_unit unit) {
    dv_axis axis = dv_axis_linear(range, unit, 5);
    axis.from = 0;
    axis.to = 100;
    assert_true(axis.mark_count >= 2 && axis.mark_count <= 12);
    double trifle = axis.step * 1e-6;
    assert_true(axis.low < axis.high && axis.low <= range.low + trifle && axis.high >= range.high - trifle);
    for (size_t i = 0; i < axis.mark_count; i++) {
        double at = dv_axis_at(&axis, axis.marks[i]);
        assert_true(at > -1e-6 && at < 100 + 1e-6);
        assert_true(fabs(axis.marks[i] / axis.step - round(axis.marks[i] / axis.step)) < 1e-6);
    }
}

static void test_axes(void **state) {
    (void)state;
    static const dv_range ranges[] = {{0, 1},    {0, 0},       {5, 5},   {-3, 17},       {88.1, 88.15}, {1e-9, 2e-9},
                                      {0, 1e13}, {-1e-3, 1e3}, {-7, -7}, {0.3, 0.30001}, {1, 2},        {0, 999}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        expect_axis(ranges[i], DV_UNIT_NONE);
    dv_axis empty = dv_axis_linear(DV_RANGE_EMPTY, DV_UNIT_BYTES, 4);
    assert_true(empty.mark_count >= 2);
    dv_axis whole = dv_axis_tight((dv_range){1, 3}, DV_UNIT_COUNT, 8);
    assert_int_equal(whole.mark_count, 3);
    dv_axis powers = dv_axis_logarithmic((dv_range){3e-5, 0.2}, DV_UNIT_NONE);
    assert_true(powers.mark_count >= 3);
    assert_true(fabs(powers.marks[0] - 1e-4) < 1e-12);
}

static void test_marks_share_a_unit(void **state) {
    (void)state;
    char text[DV_UNIT_TEXT];
    dv_axis axis = dv_axis_linear((dv_range){0, 1.9e6}, DV_UNIT_BYTES, 4);
    assert_string_equal(dv_axis_mark_text(&axis, 0, text), "0");
    assert_string_equal(dv_axis_mark_text(&axis, 1, text), "0.5" SPACE "MB");
    assert_string_equal(dv_axis_mark_text(&axis, 4, text), "2" SPACE "MB");
}

/* ---- text ---------------------------------------------------------------------------------- */

static void test_escaped(void **state) {
    (void)state;
    dv_text text = {0};
    dv_text_escape(&text, "<a href=\"x\">&'\n\x1b\xff\xc2\x9b\xc3\xa9");
    assert_string_equal(text.data,
                        "&lt;a href=&quot;x&quot;&gt;&amp;&#39; \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xc3\xa9");
    dv_text_free(&text);
}

static void test_tables(void **state) {
    (void)state;
    dv_table table = {0};
    dv_text text = {0};
    dv_table_column(&table, "name", DV_UNIT_NONE);
    dv_table_column(&table, "bytes", DV_UNIT_BYTES);
    dv_table_words(&table, "a,\"b\"\n<c>");
    dv_table_number(&table, 1234567);
    dv_table_words(&table, "none");
    dv_table_number(&table, NAN);
    dv_table_csv(&table, &text);
    assert_string_equal(text.data, "name,bytes\n\"a,\"\"b\"\"\n<c>\",1234567\nnone,\n");
    dv_text_free(&text);
    dv_table_html(&table, "t", &text);
    assert_non_null(
        strstr(text.data, "<th scope=\"row\">a,&quot;b&quot; &lt;c&gt;</th><td class=\"number\">1.2" SPACE "MB</td>"));
    dv_text_free(&text);
    dv_table_free(&table);
}

static void test_methods(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"none", "none"},
        {"division:block=8,bits=2", "division"},
        {"division:block=8,bits=2,dither=subtractive", "division:dither=subtractive"},
        {"division:dither=subtractive,block=8", "division:dither=subtractive"},
        {"division:bits=4", "division:bits=4"},
        {"unheard:of=1,block=8", "unheard:of=1,block=8"},
        {"division:", "division:"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char method[64];
        snprintf(method, sizeof method, "%s", cases[i][0]);
        dv_method_shorten(method);
        assert_string_equal(method, cases[i][1]);
    }
}

/* ---- labels -------------------------------------------------------------------------------- */

/* Of many labels at one place some stand apart or are left out, and the caller hears of it. */
static void test_crowded_labels(void **state) {
    (void)state;
    enum { MANY = 60 };
    dv_label labels[MANY];
    dv_drawing drawing = {0};
    dv_field field = {.left = 50, .right = 450, .top = 40, .bottom = 300};
    for (int i = 0; i < MANY; i++)
        labels[i] = (dv_label){200, 150, "division:dither=subtractive,recompute=norms"};
    size_t apart = dv_draw_labels(&drawing, &field, labels, MANY);
    assert_true(apart > 0 && apart < MANY);
    dv_drawing_free(&drawing);
    assert_int_equal(dv_draw_labels(&drawing, &field, labels, 1), 0);
    dv_drawing_free(&drawing);
}

/* Words that are too long are cut in their middle, between characters, and are all in the hint. */
static void test_long_words(void **state) {
    (void)state;
    dv_drawing drawing = {0};
    static const char words[] = "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9";
    dv_draw_words(&drawing, (dv_words){.room = 40}, words);
    assert_non_null(strstr(drawing.body.data, "\xe2\x80\xa6"));
    assert_non_null(
        strstr(drawing.body.data, "<title>\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9</title>"));
    assert_null(strstr(drawing.body.data, "\xef\xbf\xbd"));
    dv_drawing_free(&drawing);
}

/* ---- event files --------------------------------------------------------------------------- */

static void test_checksums(void **state) {
    (void)state;
    static const unsigned char zeros[32];
    assert_int_equal(dv_crc32c("123456789", 9), 0xe3069283);      /* the polynomial's check value */
    assert_int_equal(dv_crc32c(zeros, sizeof zeros), 0x8a9136aa); /* RFC 3720, B.4 */
    assert_int_equal(dv_crc32c("", 0), 0);
}

/* A reader of its own, written from the formats' descriptions and not from the writer. */
typedef struct reader {
    const unsigned char *at, *end;
} reader;

static uint64_t take_little(reader *r, int count) {
    uint64_t number = 0;
    assert_true(r->end - r->at >= count);
    for (int i = 0; i < count; i++)
        number |= (uint64_t)*r->at++ << 8 * i;
    return number;
}

static uint64_t take_varint(reader *r) {
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(r->at < r->end && shift < 64);
        number |= (uint64_t)(*r->at & 0x7f) << shift;
        if (*r->at++ < 0x80)
            return number;
    }
}

static reader take_block(reader *r) {
    uint64_t length = take_varint(r);
    assert_true((uint64_t)(r->end - r->at) >= length);
    reader block = {r->at, r->at + length};
    r->at += length;
    return block;
}

static uint32_t masked(const unsigned char *data, size_t bytes) {
    uint32_t crc = dv_crc32c(data, bytes);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

/* The next record, with both checksums right. */
static reader take_record(reader *file) {
    const unsigned char *start = file->at;
    uint64_t length = take_little(file, 8);
    assert_int_equal(take_little(file, 4), masked(start, 8));
    assert_true((uint64_t)(file->end - file->at) >= length + 4);
    reader record = {file->at, file->at + length};
    file->at += length;
    assert_int_equal(take_little(file, 4), masked(record.at, length));
    return record;
}

typedef struct seen {
    double time;
    uint64_t step;
    char version[32];
    char tags[8][32];
    float numbers[8];
    int count;
} seen;

static void copy_text(reader block, char text[32]) {
    assert_true(block.end - block.at < 32);
    memcpy(text, block.at, (size_t)(block.end - block.at));
    text[block.end - block.at] = '\0';
}

static void read_value(reader value, seen *event) {
    assert_true(event->count < 8);
    while (value.at < value.end) {
        uint64_t key = take_varint(&value);
        if (key == (1 << 3 | 2)) {
            copy_text(take_block(&value), event->tags[event->count]);
            continue;
        }
        assert_int_equal(key, 2 << 3 | 5);
        uint32_t bits = (uint32_t)take_little(&value, 4);
        memcpy(&event->numbers[event->count], &bits, sizeof bits);
    }
    event->count++;
}

static void read_summary(reader summary, seen *event) {
    while (summary.at < summary.end) {
        assert_int_equal(take_varint(&summary), 1 << 3 | 2);
        read_value(take_block(&summary), event);
    }
}

static void read_field(reader *record, seen *event) {
    uint64_t bits, key = take_varint(record);
    switch (key) {
    case 1 << 3 | 1:
        bits = take_little(record, 8);
        memcpy(&event->time, &bits, sizeof bits);
        return;
    case 2 << 3 | 0:
        event->step = take_varint(record);
        return;
    case 3 << 3 | 2:
        copy_text(take_block(record), event->version);
        return;
    case 5 << 3 | 2:
        read_summary(take_block(record), event);
        return;
    default:
        fail_msg("an event has field %d in form %d", (int)(key >> 3), (int)(key & 7));
    }
}

static seen read_event(reader *file) {
    seen event = {0};
    reader record = take_record(file);
    while (record.at < record.end)
        read_field(&record, &event);
    return event;
}

static void test_event_file(void **state) {
    (void)state;
    dv_log_line log[] = {{.epoch = 1,
                          .steps = 390,
                          .train_loss = 1.5,
                          .train_top1 = 40,
                          .test_loss = NAN,
                          .test_top1 = NAN,
                          .images_per_second = 300,
                          .peak_bytes = 3e9,
                          .seconds = 10,
                          .learning_rate = 0.1},
                         {.epoch = 2,
                          .steps = 780,
                          .train_loss = 1,
                          .train_top1 = 50,
                          .test_loss = 1.25,
                          .test_top1 = 61.5,
                          .images_per_second = 310,
                          .peak_bytes = 3e9,
                          .seconds = 20,
                          .learning_rate = 0.05}};
    dv_run_folder run = {.log = log, .epochs = 2, .ended = 1e9};
    dv_text bytes = {0};
    dv_tensorboard_write(&run, &bytes);
    reader file = {(const unsigned char *)bytes.data, (const unsigned char *)bytes.data + bytes.length};
    seen first = read_event(&file), one = read_event(&file), two = read_event(&file);
    assert_true(file.at == file.end);
    assert_string_equal(first.version, "brain.Event:2");
    assert_true(first.time == 1e9 - 30 && one.time == 1e9 - 20 && two.time == 1e9);
    assert_true(one.step == 390 && two.step == 780);
    assert_int_equal(one.count, 5); /* there was no test */
    assert_int_equal(two.count, 7);
    assert_string_equal(two.tags[0], "accuracy/test");
    assert_true(two.numbers[0] == 61.5F);
    assert_string_equal(two.tags[4], "learning_rate");
    assert_true(two.numbers[4] == 0.05F);
    dv_text_free(&bytes);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void test_nothing_added(void **state) {
    char path[FOLDER_PATH_BYTES];
    dv_report *report;
    assert_ok(dv_report_new(&report, &error));
    assert_fails(dv_report_tensorboard(report, *state, &error), DV_ERROR_OPTION, "no run was given");
    assert_ok(dv_report_page(report, "empty", folder_path(state, "page.html", path), &error));
    assert_null(dv_report_note_at(report, 0));
    dv_report_free(report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_marks_share_a_unit),
        cmocka_unit_test(test_escaped),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_crowded_labels),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_checksums),
        cmocka_unit_test(test_event_file),
        cmocka_unit_test_setup_teardown(test_nothing_added, folder_new, folder_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
