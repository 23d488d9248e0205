/* Photographs decoded and resized next to PIL, which most networks were trained with. Left out, with a word, where
 * there is no Python with PIL or where the photographs are missing: DV_SHARED, or ../shared beside the source, has
 * data/imagenet-sample. */
#include "images.h"

#include <division/data.h>

enum { SIDE = 224, RESIZE = 256 };

/* Writes all files of the folder that are images: width, height, the pixels; then those of Resize(256) and
 * CenterCrop(224) as torchvision does them. */
static const char script[] =
    "import sys, pathlib, struct\n"
    "from PIL import Image\n"
    "for path in sorted(pathlib.Path(sys.argv[1]).glob('*/*/*.JPEG')):\n"
    "    image = Image.open(path).convert('RGB')\n"
    "    width, height = image.size\n"
    "    name = str(path).encode()\n"
    "    out = struct.pack('<III', len(name), width, height) + name + image.tobytes()\n"
    "    short = min(width, height)\n"
    "    size = (256, int(256 * height / width)) if width <= height else (int(256 * width / height), 256)\n"
    "    image = image.resize(size, Image.BILINEAR)\n"
    "    left, top = int(round((size[0] - 224) / 2)), int(round((size[1] - 224) / 2))\n"
    "    out += image.crop((left, top, left + 224, top + 224)).tobytes()\n"
    "    sys.stdout.buffer.write(out)\n";

static int find_photographs(char path[FOLDER_PATH_BYTES]) {
    const char *shared = getenv("DV_SHARED"), *source = getenv("DV_SOURCE_DIR");
    if (shared != NULL)
        snprintf(path, FOLDER_PATH_BYTES, "%.512s/data/imagenet-sample", shared);
    else
        snprintf(path, FOLDER_PATH_BYTES, "%.512s/../shared/data/imagenet-sample", source != NULL ? source : ".");
    return access(path, R_OK) == 0;
}

/* A Python that has PIL, or NULL. */
static const char *find_python(void) {
    static const char *const candidates[] = {"python3", "/usr/bin/python3"};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        char call[256];
        snprintf(call, sizeof call, "%s -c 'import PIL.Image' >/dev/null 2>&1", candidates[i]);
        if (system(call) == 0)
            return candidates[i];
    }
    return NULL;
}

/* The largest difference between two views. */
static int compare(const uint8_t *a, const uint8_t *b, size_t count) {
    int most = 0;
    for (size_t i = 0; i < count; i++)
        most = abs(a[i] - b[i]) > most ? abs(a[i] - b[i]) : most;
    return most;
}

static void *read_exactly(FILE *from, size_t bytes) {
    void *data = malloc(bytes + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, bytes, from), bytes);
    ((char *)data)[bytes] = '\0';
    return data;
}

static uint8_t *read_file(const char *path, size_t *bytes) {
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    uint8_t *data = malloc(1 << 24);
    assert_non_null(data);
    *bytes = fread(data, 1, 1 << 24, stream);
    fclose(stream);
    return data;
}

/* Decodes what the view shows. */
static uint8_t *show(const uint8_t *bytes, size_t count, const dv_view *view) {
    size_t width = view->size.part_width, height = view->size.part_height;
    dv_decoder *decoder;
    uint8_t *pixels = malloc(width * height * DV_PIXEL);
    assert_non_null(pixels);
    assert_ok(dv_decoder_new(width, height, &decoder, &error));
    assert_ok(dv_decoder_open(decoder, bytes, count, &width, &height, &error));
    assert_ok(dv_decoder_show(decoder, view, pixels, &error));
    dv_decoder_free(decoder);
    return pixels;
}

/* The whole image, and the view of a test, differ by the decoder's rounding at most. */
static void check_image(FILE *from, const uint32_t header[3]) {
    size_t width = header[1], height = header[2], count;
    char *path = read_exactly(from, header[0]);
    uint8_t *whole = read_exactly(from, width * height * DV_PIXEL);
    uint8_t *middle = read_exactly(from, (size_t)SIDE * SIDE * DV_PIXEL), *bytes = read_file(path, &count);
    dv_view view = dv_view_whole(width, height, width, height);
    uint8_t *pixels = show(bytes, count, &view);
    int found = compare(pixels, whole, width * height * DV_PIXEL);
    if (found > 1)
        fail_msg("%s: decoded pixels differ by up to %d", path, found);
    free(pixels);
    view = dv_view_choose(&(dv_view_options){.side = SIDE, .resize = RESIZE}, (dv_showing){0, 0, 0}, width, height);
    pixels = show(bytes, count, &view);
    found = compare(pixels, middle, (size_t)SIDE * SIDE * DV_PIXEL);
    if (found > 1)
        fail_msg("%s: the view of a test differs by up to %d", path, found);
    free(pixels);
    free(bytes);
    free(middle);
    free(whole);
    free(path);
}

static void test_against_pil(void **state) {
    (void)state;
    char photographs[FOLDER_PATH_BYTES], call[2 * FOLDER_PATH_BYTES + sizeof script];
    const char *python = find_python();
    if (python == NULL || !find_photographs(photographs))
        leave_out("there is no %s", python == NULL ? "Python with PIL (package python3-pil)" : "folder of photographs");
    snprintf(call, sizeof call, "%s -c \"%s\" '%s'", python, script, photographs);
    FILE *from = popen(call, "r");
    assert_non_null(from);
    uint32_t header[3];
    size_t images = 0;
    while (fread(header, sizeof *header, 3, from) == 3) {
        check_image(from, header);
        images++;
    }
    assert_int_equal(pclose(from), 0);
    assert_int_equal(images, 39);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_pil)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
