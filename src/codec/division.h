/* The options of the codec `division`, which codecs built upon it have too. */
#ifndef DV_CODEC_DIVISION_H
#define DV_CODEC_DIVISION_H

#include <division/codec.h>
#include <division/option.h>

enum { DV_DIVISION_BLOCK, DV_DIVISION_BITS, DV_DIVISION_DITHER, DV_DIVISION_LFC, DV_DIVISION_HFC, DV_DIVISION_OPTIONS };

extern const dv_option dv_division_options[DV_DIVISION_OPTIONS];

/* Fails where options that are within their bounds contradict each other. */
dv_status dv_division_check(const dv_codec *codec, dv_error *error);

#endif
