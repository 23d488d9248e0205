/* Event files: TFRecords of protobuf messages, both by hand, for six fields are no reason for a library.
 *
 *     TFRecord   length (64 bits), its checksum (32), the message, its checksum (32); all little-endian
 *     Event      1: wall time (double)   2: step (varint)   3: version (text)   5: Summary
 *     Summary    1: Value, once or more
 *     Value      1: tag (text)   2: number (float)
 *
 * A field is preceded by its number and the form of what follows. */
#include "report/tensorboard.h"

#include "report/crc32c.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Forms of fields. */
enum { VARINT = 0, EIGHT_BYTES = 1, LENGTH_FIRST = 2, FOUR_BYTES = 5 };

/* Fields. */
enum {
    EVENT_TIME = 1,
    EVENT_STEP = 2,
    EVENT_VERSION = 3,
    EVENT_SUMMARY = 5,
    SUMMARY_VALUE = 1,
    VALUE_TAG = 1,
    VALUE_NUMBER = 2
};

/* What is told of each epoch. */
static const struct {
    const char *tag;
    size_t offset;
} scalars[] = {
    {"accuracy/test", offsetof(dv_log_line, test_top1)},
    {"accuracy/train", offsetof(dv_log_line, train_top1)},
    {"loss/test", offsetof(dv_log_line, test_loss)},
    {"loss/train", offsetof(dv_log_line, train_loss)},
    {"learning_rate", offsetof(dv_log_line, learning_rate)},
    {"images_per_second", offsetof(dv_log_line, images_per_second)},
    {"peak_bytes", offsetof(dv_log_line, peak_bytes)},
};

/* ---- bytes --------------------------------------------------------------------------------- */

/* So many bytes of a number, the lowest first. */
static void put_little(dv_text *bytes, uint64_t number, int count) {
    for (int i = 0; i < count; i++, number >>= 8)
        dv_text_bytes(bytes, &(unsigned char){(unsigned char)number}, 1);
}

static void put_varint(dv_text *bytes, uint64_t number) {
    for (; number >= 0x80; number >>= 7)
        put_little(bytes, (number & 0x7f) | 0x80, 1);
    put_little(bytes, number, 1);
}

static void put_field(dv_text *bytes, unsigned field, unsigned form) {
    put_varint(bytes, field << 3 | form);
}

static void put_block(dv_text *bytes, unsigned field, const void *data, size_t count) {
    put_field(bytes, field, LENGTH_FIRST);
    put_varint(bytes, count);
    dv_text_bytes(bytes, data, count);
}

/* A message as a field of another; it is freed. */
static void put_message(dv_text *bytes, unsigned field, dv_text *message) {
    put_block(bytes, field, message->data, message->length);
    bytes->failed |= message->failed;
    dv_text_free(message);
}

static void put_double(dv_text *bytes, unsigned field, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_field(bytes, field, EIGHT_BYTES);
    put_little(bytes, bits, 8);
}

static void put_float(dv_text *bytes, unsigned field, double number) {
    float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    put_field(bytes, field, FOUR_BYTES);
    put_little(bytes, bits, 4);
}

/* ---- events -------------------------------------------------------------------------------- */

/* A record with a message, which is freed. */
static void put_record(dv_text *bytes, dv_text *message) {
    dv_text length = {0};
    put_little(&length, message->length, 8);
    bytes->failed |= length.failed || message->failed;
    if (!bytes->failed) {
        dv_text_bytes(bytes, length.data, length.length);
        put_little(bytes, dv_crc32c_masked(length.data, length.length), 4);
        dv_text_bytes(bytes, message->data, message->length);
        put_little(bytes, dv_crc32c_masked(message->data, message->length), 4);
    }
    dv_text_free(&length);
    dv_text_free(message);
}

static void put_scalar(dv_text *summary, const char *tag, double number) {
    dv_text value = {0};
    put_block(&value, VALUE_TAG, tag, strlen(tag));
    put_float(&value, VALUE_NUMBER, number);
    put_message(summary, SUMMARY_VALUE, &value);
}

static void put_epoch(dv_text *bytes, const dv_log_line *line, double time) {
    dv_text event = {0}, summary = {0};
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        double number = dv_log_number(line, scalars[i].offset);
        if (isfinite(number))
            put_scalar(&summary, scalars[i].tag, number);
    }
    put_double(&event, EVENT_TIME, time);
    put_field(&event, EVENT_STEP, VARINT);
    put_varint(&event, (uint64_t)(line->steps >= 0 ? line->steps : line->epoch));
    if (summary.length > 0)
        put_message(&event, EVENT_SUMMARY, &summary);
    put_record(bytes, &event);
}

/* The first record says which version of the format follows. */
static void put_version(dv_text *bytes, double time) {
    static const char version[] = "brain.Event:2";
    dv_text event = {0};
    put_double(&event, EVENT_TIME, time);
    put_block(&event, EVENT_VERSION, version, sizeof version - 1);
    put_record(bytes, &event);
}

static double seconds_of(const dv_log_line *line) {
    return line->seconds >= 0 ? line->seconds : 0;
}

void dv_tensorboard_write(const dv_run_folder *run, dv_text *bytes) {
    double time = run->ended;
    for (size_t i = 0; i < run->epochs; i++)
        time -= seconds_of(&run->log[i]);
    put_version(bytes, time);
    for (size_t i = 0; i < run->epochs; i++) {
        time += seconds_of(&run->log[i]);
        put_epoch(bytes, &run->log[i], time);
    }
}
