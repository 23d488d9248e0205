/* Text by its characters, in UTF-8: tables and pictures have a place for each, not for each byte. */
#ifndef DIVISION_TOOLS_TEXT_H
#define DIVISION_TOOLS_TEXT_H

#include <division/tools/tool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Characters of a text. A byte that is none is one. */
DV_TOOL size_t dv_text_characters(const char *text);

/* Cuts a text that has more than `most` characters, two at least: the last two are dots then. Returns `text`. */
DV_TOOL char *dv_text_cut(char *text, size_t most);

#ifdef __cplusplus
}
#endif

#endif
