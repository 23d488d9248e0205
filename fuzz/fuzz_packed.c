/* Fuzzes packed maps by text: any two lines as codec and map, and any bytes behind them as what is packed. Whatever is
 * accepted stays in its buffers, and whatever is not is explained in one line.
 *
 * An input is a line for the codec, a line for the map, then bytes that are repeated to fill the packed map. */
#include "require.h"

#include <division/packed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 14, LINE_BYTES = 120 };

/* Moves the input's next line, cut, into `line`. */
static void take_line(const uint8_t **data, size_t *size, char line[LINE_BYTES]) {
    const uint8_t *end = *size ? memchr(*data, '\n', *size) : NULL;
    size_t length = end ? (size_t)(end - *data) : *size, cut = length < LINE_BYTES - 1 ? length : LINE_BYTES - 1;
    memset(line, 0, LINE_BYTES);
    if (cut)
        memcpy(line, *data, cut);
    length += end ? 1 : 0;
    *data += length;
    *size -= length;
}

/* Buffers of their exact sizes, so that the sanitizer guards their ends. */
static uint8_t *filled(const uint8_t *data, size_t size, size_t bytes) {
    void *memory = NULL;
    REQUIRE(posix_memalign(&memory, DV_PACKED_ALIGNMENT, bytes) == 0);
    for (size_t i = 0; i < bytes; i++)
        ((uint8_t *)memory)[i] = size ? data[i % size] : 0;
    return memory;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char codec[LINE_BYTES], text[LINE_BYTES], message[DV_ERROR_TEXT_BYTES] = "";
    dv_map map;
    size_t bytes;
    take_line(&data, &size, codec);
    take_line(&data, &size, text);
    if (dv_packed_bytes(codec, text, &bytes, message) != DV_OK) {
        REQUIRE(message[0] && !strchr(message, '\n'));
        return 0;
    }
    REQUIRE(dv_map_parse(text, &map, NULL) == DV_OK);
    if (bytes > MOST_BYTES || dv_map_bytes(&map) > MOST_BYTES)
        return 0;
    uint8_t *packed = filled(data, size, bytes), *elements = filled(data, size, dv_map_bytes(&map));
    (void)dv_packed_apply_mask(codec, text, packed, bytes, elements, elements, message);
    (void)dv_packed_encode(codec, text, 1, 2, 3, elements, packed, bytes, message);
    REQUIRE(dv_packed_decode(codec, text, 1, 2, 3, packed, bytes, elements, message) == DV_OK);
    uint8_t *anything = filled(data, size, bytes);
    message[0] = 0;
    if (dv_packed_decode(codec, text, 1, 2, 3, anything, bytes, elements, message) != DV_OK)
        REQUIRE(message[0] && !strchr(message, '\n'));
    free(anything);
    free(elements);
    free(packed);
    return 0;
}
