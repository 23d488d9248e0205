/* Fields of messages. */
#include "export/protobuf.h"

#include <string.h>

enum { VARINT = 0, LENGTH = 2, FIXED32 = 5, MOST_VARINT = 10 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they are in memory");

void dv_protobuf_raw(dv_protobuf *to, const void *data, size_t bytes) {
    to->length += bytes;
    if (to->stream != NULL)
        fwrite(data, 1, bytes, to->stream); /* whoever commits the file asks ferror */
}

static void write_varint(dv_protobuf *to, uint64_t value) {
    uint8_t bytes[MOST_VARINT];
    size_t count = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[count++] = (uint8_t)(value | 0x80);
    bytes[count++] = (uint8_t)value;
    dv_protobuf_raw(to, bytes, count);
}

static void write_key(dv_protobuf *to, unsigned field, unsigned kind) {
    write_varint(to, field << 3 | kind);
}

void dv_protobuf_integer(dv_protobuf *to, unsigned field, int64_t value) {
    write_key(to, field, VARINT);
    write_varint(to, (uint64_t)value);
}

void dv_protobuf_float(dv_protobuf *to, unsigned field, float value) {
    write_key(to, field, FIXED32);
    dv_protobuf_raw(to, &value, sizeof value);
}

void dv_protobuf_begin(dv_protobuf *to, unsigned field, uint64_t bytes) {
    write_key(to, field, LENGTH);
    write_varint(to, bytes);
}

void dv_protobuf_text(dv_protobuf *to, unsigned field, const char *text) {
    size_t bytes = strlen(text);
    dv_protobuf_begin(to, field, bytes);
    dv_protobuf_raw(to, text, bytes);
}

void dv_protobuf_message(dv_protobuf *to, unsigned field, dv_protobuf_fields fields, const void *context) {
    dv_protobuf counted = {0};
    fields(&counted, context);
    dv_protobuf_begin(to, field, counted.length);
    if (to->stream != NULL)
        fields(to, context);
    else
        to->length += counted.length;
}
