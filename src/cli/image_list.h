/* Images that a command is told to read: files, folders with all that is below them, standard input. */
#ifndef DV_CLI_IMAGE_LIST_H
#define DV_CLI_IMAGE_LIST_H

#include <division/status.h>
#include <stddef.h>

typedef struct image_list {
    size_t count, room;
    char **paths; /* [count], owned; "-" is standard input */
} image_list;

/* Adds what an operand stands for: of a folder the files whose names end as those of images do, in the order of names,
 * those of folders in it too. A folder without any is DV_ERROR_FORMAT. */
dv_status image_list_add(image_list *list, const char *operand, dv_error *error);
void image_list_free(image_list *list);

#endif
