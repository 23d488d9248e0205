/* Headers in this folder are for the program `division` alone. They are neither installed nor promised: they change
 * whenever the program needs something else. The static library in the build folder has their functions, the shared
 * one does not export them. Nothing in a header above this folder may include one of them. */
#ifndef DIVISION_TOOLS_TOOL_H
#define DIVISION_TOOLS_TOOL_H

/* Marks a function for the program: hidden, as all that DV_API does not mark. */
#define DV_TOOL

#endif
