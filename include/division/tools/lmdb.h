/* LMDB files of images, made from a folder of them: a data set of a few large files, read in order from a disk that
 * would take long to find a million small ones. docs/data.md has the layout. */
#ifndef DIVISION_TOOLS_LMDB_H
#define DIVISION_TOOLS_LMDB_H

#include <division/data.h>
#include <division/status.h>
#include <division/tools/tool.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How far it is. */
typedef struct dv_lmdb_progress {
    dv_split split;
    int verifying;       /* else converting */
    size_t done, images; /* of the split */
    size_t all_done, all_images;
    size_t kept;         /* of all_done: were there before this call */
    double seconds;      /* since it began */
    double seconds_left; /* NaN while it can't be known */
} dv_lmdb_progress;

/* Callbacks of a conversion. Any may be NULL. */
typedef struct dv_lmdb_callbacks {
    void (*progress)(void *context, const dv_lmdb_progress *progress);
    void (*corrupt)(void *context, const char *text); /* an image that could not be decoded, and was not resized */
    void *context;
    const volatile sig_atomic_t *stop; /* not 0: stop after the transaction, which is DV_OK */
} dv_lmdb_callbacks;

typedef struct dv_lmdb_options {
    size_t resize;  /* the shorter side of what is larger, 16 to 4096; 0: the bytes of the files are kept as they are */
    size_t quality; /* of the JPEG of what is resized, 50 to 100; 95 */
    size_t workers; /* threads that read, decode and pack, 1 to 256; 0: as many as OpenMP uses */
} dv_lmdb_options;

DV_TOOL dv_lmdb_options dv_lmdb_options_default(void);

typedef struct dv_lmdb_result {
    size_t images[DV_SPLIT_COUNT]; /* records there are now */
    size_t kept;                   /* of them were there before */
    size_t resized, corrupt;       /* by this call */
    size_t bytes[DV_SPLIT_COUNT];  /* of the files */
    int complete;                  /* 0: stopped; call it again to go on */
} dv_lmdb_result;

/* Makes DEST/train.lmdb and DEST/val.lmdb of the image folder `source`, and then verifies them. What an earlier call
 * that was ended in whatever way had written is kept, if it was made of the same files with the same options. */
DV_TOOL dv_status dv_lmdb_convert(const char *source, const char *destination, const dv_lmdb_options *options,
                                  const dv_lmdb_callbacks *callbacks, dv_lmdb_result *result, dv_error *error);

/* Looks at every record of both files: that it is there, whole, and of a class there is. */
DV_TOOL dv_status dv_lmdb_verify(const char *destination, const dv_lmdb_callbacks *callbacks, dv_lmdb_result *result,
                                 dv_error *error);

#ifdef __cplusplus
}
#endif

#endif
