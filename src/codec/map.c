/* Shapes of maps: checks, sizes, names, and the low-frequency component to look at. */
#include "base/status.h"
#include "codec/kernels/kernels.h"

#include <division/codec.h>
#include <inttypes.h>

static const size_t type_bytes[DV_TYPE_COUNT] = {[DV_F32] = 4, [DV_BF16] = 2, [DV_F16] = 2};
static const char *const type_names[DV_TYPE_COUNT] = {[DV_F32] = "f32", [DV_BF16] = "bf16", [DV_F16] = "f16"};
static const char *const layout_names[DV_LAYOUT_COUNT] = {[DV_NCHW] = "nchw", [DV_NHWC] = "nhwc"};

size_t dv_type_bytes(dv_type type) {
    return (unsigned)type < DV_TYPE_COUNT ? type_bytes[type] : 0;
}

const char *dv_type_name(dv_type type) {
    return (unsigned)type < DV_TYPE_COUNT ? type_names[type] : "unknown";
}

const char *dv_layout_name(dv_layout layout) {
    return (unsigned)layout < DV_LAYOUT_COUNT ? layout_names[layout] : "unknown";
}

/* Multiplies *product by `factor`; false if it would pass `limit`. */
static int multiply(uint64_t *product, uint64_t factor, uint64_t limit) {
    if (factor > limit / *product)
        return 0;
    *product *= factor;
    return 1;
}

dv_status dv_map_check(const dv_map *map, dv_error *error) {
    if (!map)
        return dv_fail(error, DV_ERROR_ARGUMENT, "map is NULL");
    if ((unsigned)map->type >= DV_TYPE_COUNT)
        return dv_fail(error, DV_ERROR_ARGUMENT, "map: unknown element type %d", (int)map->type);
    if ((unsigned)map->layout >= DV_LAYOUT_COUNT)
        return dv_fail(error, DV_ERROR_ARGUMENT, "map: unknown layout %d", (int)map->layout);
    if (map->rank < 0 || map->rank > DV_MAX_RANK)
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "map: %d spatial dimensions: 0 to %d are supported", map->rank,
                       DV_MAX_RANK);
    const uint64_t image_limit = UINT64_C(1) << 32;
    uint64_t image = 1, all;
    int fits = map->images > 0 && map->channels > 0 && multiply(&image, map->channels, image_limit);
    for (int d = 0; fits && d < map->rank; d++)
        fits = map->sides[d] > 0 && multiply(&image, map->sides[d], image_limit);
    if (!fits)
        return dv_fail(error, DV_ERROR_UNSUPPORTED,
                       "map: images, channels and sides must be at least 1, and an image at most 2^32 elements");
    all = image;
    if (!multiply(&all, map->images, SIZE_MAX / 16))
        return dv_fail(error, DV_ERROR_UNSUPPORTED, "map: %zu images of %" PRIu64 " elements do not fit in memory",
                       map->images, image);
    return DV_OK;
}

size_t dv_map_image_elements(const dv_map *map) {
    size_t count = map->channels;
    for (int d = 0; d < map->rank; d++)
        count *= map->sides[d];
    return count;
}

size_t dv_map_elements(const dv_map *map) {
    return map->images * dv_map_image_elements(map);
}

size_t dv_map_bytes(const dv_map *map) {
    return dv_map_elements(map) * dv_type_bytes(map->type);
}

void dv_convert_to_f32(dv_type type, const void *src, size_t count, float *dst) {
    dv_codec_kernels_current()->to_f32(type, src, count, dst);
}

/* Replaces one line of `count` elements, `stride` apart, by the averages of its blocks. */
static void average_line(float *line, size_t count, size_t stride, size_t block) {
    for (size_t start = 0; start < count; start += block) {
        size_t length = count - start < block ? count - start : block;
        double sum = 0;
        for (size_t i = start; i < start + length; i++)
            sum += line[i * stride];
        for (size_t i = start; i < start + length; i++)
            line[i * stride] = (float)(sum / (double)length);
    }
}

/* Averages over blocks are averages along one dimension after another. */
dv_status dv_map_low_frequency(const dv_map *map, size_t block, const void *src, float *dst, dv_error *error) {
    DV_TRY(dv_map_check(map, error));
    if (!src || !dst || block == 0)
        return dv_fail(error, DV_ERROR_ARGUMENT, "low frequency: a buffer is NULL or the block edge is 0");
    dv_convert_to_f32(map->type, src, dv_map_elements(map), dst);
    size_t count = dv_map_elements(map), stride = map->layout == DV_NHWC ? map->channels : 1;
    for (int d = map->rank - 1; d >= 0; d--) {
        size_t side = map->sides[d];
        for (size_t line = 0; line < count / side; line++)
            average_line(dst + line / stride * stride * side + line % stride, side, stride, block);
        stride *= side;
    }
    return DV_OK;
}
