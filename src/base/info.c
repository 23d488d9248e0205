/* Versions of the libraries that this one stands on. */
#include <division/info.h>

#include <lmdb.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <spng.h>
#include <stdio.h>
#include <webp/decode.h>
#include <zlib.h>

#include <jpeglib.h> /* needs stdio.h */

static const char *compiler_version(void) {
    return __VERSION__;
}

/* OpenMP tells its version as the month of its specification. */
static const char *openmp_version(void) {
    switch (_OPENMP) {
    case 201511:
        return "4.5";
    case 201811:
        return "5.0";
    case 202011:
        return "5.1";
    case 202111:
        return "5.2";
    default:
        return "before 4.5 or after 5.2";
    }
}

static char onednn_text[32];

static void write_onednn_text(void) {
    const dnnl_version_t *version = dnnl_version();
    snprintf(onednn_text, sizeof onednn_text, "%d.%d.%d", version->major, version->minor, version->patch);
}

static const char *onednn_version(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_onednn_text);
    return onednn_text;
}

#define TEXT_OF(macro) #macro
#define TEXT(macro) TEXT_OF(macro)

static const char *jpeg_version(void) {
    return TEXT(LIBJPEG_TURBO_VERSION);
}

static char webp_text[32];

/* A byte each of major, minor and patch. */
static void write_webp_text(void) {
    int version = WebPGetDecoderVersion();
    snprintf(webp_text, sizeof webp_text, "%d.%d.%d", version >> 16, version >> 8 & 255, version & 255);
}

static const char *webp_version(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_webp_text);
    return webp_text;
}

static char lmdb_text[32];

static void write_lmdb_text(void) {
    int major, minor, patch;
    mdb_version(&major, &minor, &patch);
    snprintf(lmdb_text, sizeof lmdb_text, "%d.%d.%d", major, minor, patch);
}

static const char *lmdb_version(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, write_lmdb_text);
    return lmdb_text;
}

typedef struct library {
    const char *name;
    const char *(*version)(void);
} library;

static const library libraries[] = {
    {"compiler", compiler_version},   {"OpenMP", openmp_version},      {"oneDNN", onednn_version},
    {"libspng", spng_version_string}, {"libjpeg-turbo", jpeg_version}, {"libwebp", webp_version},
    {"LMDB", lmdb_version},           {"zlib", zlibVersion},
};

enum { LIBRARY_COUNT = sizeof libraries / sizeof *libraries };

const char *dv_library_name_at(size_t index) {
    return index < LIBRARY_COUNT ? libraries[index].name : NULL;
}

const char *dv_library_version_at(size_t index) {
    return index < LIBRARY_COUNT ? libraries[index].version() : NULL;
}
