/* Marks what libdivision exports; everything else has hidden visibility.
 *
 * - Threads, fork, freeing: There are macros here, and nothing else. */
#ifndef DIVISION_EXPORT_H
#define DIVISION_EXPORT_H

#if defined(__GNUC__)
#define DV_API __attribute__((visibility("default")))
#define DV_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define DV_API
#define DV_PRINTF(text, first)
#endif

#endif
