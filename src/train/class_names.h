/* Names of classes as a note of a checkpoint: a JSON array of text, ["cat", "dog"]. */
#ifndef DV_TRAIN_CLASS_NAMES_H
#define DV_TRAIN_CLASS_NAMES_H

#include <division/data.h>

#define DV_NOTE_CLASS_NAMES "class_names"

/* The names of a data set's classes as the note has them: `text` is the caller's to free(). NULL: there are none. */
dv_status dv_class_names_text(const dv_dataset *data, char **text, dv_error *error);

/* Reads a note into `names` [classes], which point into one block: both are freed by freeing `names`. Names that the
 * note does not have are NULL. More names than classes, or text that is no such array, are DV_ERROR_FORMAT. */
dv_status dv_class_names_read(const char *text, size_t classes, char ***names, dv_error *error);

#endif
