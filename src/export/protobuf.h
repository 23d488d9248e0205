/* Writing protocol buffers: fields of messages, one behind the other.
 *
 *     key         field number and kind of what follows, as a varint
 *     varint      seven bits a byte, the lowest first; the highest bit says that there is more
 *     length      of bytes, text and messages, as a varint before them
 *
 * A message inside of a message is a function that writes it: it is called once to count and once to write, so that
 * nothing is held in memory and arrays go from where they are to the file. */
#ifndef DV_EXPORT_PROTOBUF_H
#define DV_EXPORT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct dv_protobuf {
    FILE *stream;    /* NULL: bytes are counted alone */
    uint64_t length; /* so far */
} dv_protobuf;

/* Writes the fields of a message. */
typedef void (*dv_protobuf_fields)(dv_protobuf *to, const void *context);

void dv_protobuf_integer(dv_protobuf *to, unsigned field, int64_t value);
void dv_protobuf_float(dv_protobuf *to, unsigned field, float value);
void dv_protobuf_text(dv_protobuf *to, unsigned field, const char *text);
void dv_protobuf_message(dv_protobuf *to, unsigned field, dv_protobuf_fields fields, const void *context);

/* The key and length of a field of bytes, which dv_protobuf_raw writes then. */
void dv_protobuf_begin(dv_protobuf *to, unsigned field, uint64_t bytes);
void dv_protobuf_raw(dv_protobuf *to, const void *data, size_t bytes);

#endif
