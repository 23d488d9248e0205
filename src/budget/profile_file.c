/* A profile as a file, so that a network is probed once and planned often, here or for another machine:
 *
 *     {"images": 16, "images_seconds": 0.31, "update_seconds": 0.002, "recompute": 2.1e-10,
 *      "steady_code": 0.4, "steady_outside": 1, "steady_lean": 0.3, "steady_floor": 0.2,
 *      "codecs": [{"codec": "division:block=8,bits=2", "encode": 3.1e-10, "decode": 2.4e-10}, ...],
 *      "values": [{"value": "images", "code": 0.001, "code_through": 0, ..., "floor_back": 0, "forward": 0}, ...]}
 *
 * Seconds are of a step of `images` or of an element, noise is by the variance of the batch: of each kind (profile.h),
 * what a value's own readers make of it, what goes through values recomputed from it, and what goes back from norms.
 * Values are those of the network, in its order: `forward` is the time of the layer that makes one. */
#include "base/file.h"
#include "base/json_read.h"
#include "base/status.h"
#include "budget/profile.h"
#include "graph/graph.h"

#include <division/tools/json.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 64 << 20, TEXT_BYTES = 256, MOST_NUMBERS = 3 * DV_NOISE_KINDS + 1 };

static const char *const codec_numbers[] = {"encode", "decode", NULL};
static const char *const value_numbers[] = {
    "code",         "code_through", "code_back", "outside",       "outside_through", "outside_back", "lean",
    "lean_through", "lean_back",    "floor",     "floor_through", "floor_back",      "forward",      NULL};

static const struct {
    const char *name;
    size_t offset;
} scalars[] = {{"images_seconds", offsetof(dv_profile, images_seconds)},
               {"update_seconds", offsetof(dv_profile, update_seconds)},
               {"recompute", offsetof(dv_profile, recompute)},
               {"steady_code", offsetof(dv_profile, steady[DV_NOISE_CODE])},
               {"steady_outside", offsetof(dv_profile, steady[DV_NOISE_OUTSIDE])},
               {"steady_lean", offsetof(dv_profile, steady[DV_NOISE_LEAN])},
               {"steady_floor", offsetof(dv_profile, steady[DV_NOISE_FLOOR])}};

enum { SCALARS = sizeof scalars / sizeof *scalars };

static double *scalar_of(const dv_profile *profile, int index) {
    return (void *)((char *)profile + scalars[index].offset);
}

static const char *value_name(const dv_graph *graph, size_t index) {
    return index == 0 ? "images" : graph->layers[index - 1].layer.name;
}

/* Where the numbers of a codec and of a value are, in the order of their names. The images have no layer. */
static void places_of_codec(dv_profile *profile, size_t index, double **places) {
    places[0] = &profile->encode[index];
    places[1] = &profile->decode[index];
}

static void places_of_value(dv_profile *profile, size_t index, double *none, double **places) {
    dv_value_noise *noise = &profile->noise[index];
    for (int kind = 0; kind < DV_NOISE_KINDS; kind++) {
        places[3 * kind] = &noise->direct[kind];
        places[3 * kind + 1] = &noise->through[kind];
        places[3 * kind + 2] = &noise->back[kind];
    }
    places[3 * DV_NOISE_KINDS] = index > 0 ? &profile->forward[index - 1] : none;
}

/* ---- writing ----------------------------------------------------------------------------------- */

static void write_record(dv_json *json, const char *key, const char *text, const char *const *names,
                         double *const *places) {
    dv_json_object(json, NULL);
    dv_json_text(json, key, text);
    for (int i = 0; names[i] != NULL; i++)
        dv_json_number(json, names[i], *places[i]);
    dv_json_end(json);
}

static void write_all(const dv_profile *profile, const dv_graph *graph, dv_json *json) {
    double none = 0, *places[MOST_NUMBERS];
    dv_json_object(json, NULL);
    dv_json_unsigned(json, "images", profile->images);
    for (int i = 0; i < SCALARS; i++)
        dv_json_number(json, scalars[i].name, *scalar_of(profile, i));
    dv_json_array(json, "codecs");
    for (size_t i = 0; dv_candidate_at(i) && i < DV_PROFILE_MOST_CANDIDATES; i++)
        if (dv_candidate_at(i)->codec) {
            places_of_codec((dv_profile *)profile, i, places);
            write_record(json, "codec", dv_candidate_at(i)->codec, codec_numbers, places);
        }
    dv_json_end(json);
    dv_json_array(json, "values");
    for (size_t i = 0; i < profile->value_count; i++) {
        places_of_value((dv_profile *)profile, i, &none, places);
        write_record(json, "value", value_name(graph, i), value_numbers, places);
    }
    dv_json_end(json);
    dv_json_end(json);
}

dv_status dv_profile_write(const dv_profile *profile, const dv_graph *graph, const char *path, dv_error *error) {
    dv_file file;
    dv_json json;
    DV_NEED(profile);
    DV_NEED(graph);
    DV_NEED(path);
    DV_TRY(dv_file_begin(&file, path, error));
    dv_json_to_file(&json, file.stream);
    write_all(profile, graph, &json);
    dv_status status = dv_json_finish(&json, error);
    if (status == DV_OK)
        return dv_file_commit(&file, error);
    dv_file_abandon(&file);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* A number that is finite and not below zero. */
static bool read_number(dv_json_cursor *json, double *number) {
    char text[TEXT_BYTES], *end;
    bool is_null;
    if (!dv_json_read_scalar(json, text, sizeof text, &is_null))
        return false;
    *number = strtod(text, &end);
    return (end != text && *end == '\0' && isfinite(*number) && *number >= 0) ||
           dv_json_refuse(json, "a number of at least 0 is expected");
}

static int find_name(const char *const *names, const char *name) {
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* One codec or value: its name, and all its numbers. */
static bool read_record(dv_json_cursor *json, const char *key, char *text, const char *const *names, double *numbers) {
    unsigned seen = 0, all = 0;
    char name[TEXT_BYTES];
    text[0] = '\0';
    for (int i = 0; names[i] != NULL; i++)
        all |= 1u << i;
    for (dv_json_enter(json, '{'); dv_json_next(json, '}');) {
        if (!dv_json_read_key(json, name, sizeof name))
            return false;
        int at = find_name(names, name);
        if (at >= 0 && read_number(json, &numbers[at]))
            seen |= 1u << at;
        else if (strcmp(name, key) == 0)
            dv_json_read_text(json, text, TEXT_BYTES);
        else
            dv_json_skip(json);
    }
    return !json->problem && (seen == all || dv_json_refuse(json, "a number is missing"));
}

/* A codec that is no candidate any more is passed over. */
static bool read_codec(dv_json_cursor *json, dv_profile *profile) {
    char text[TEXT_BYTES];
    double numbers[MOST_NUMBERS] = {0}, *places[MOST_NUMBERS];
    if (!read_record(json, "codec", text, codec_numbers, numbers))
        return false;
    for (size_t i = 0; dv_candidate_at(i) && i < DV_PROFILE_MOST_CANDIDATES; i++)
        if (dv_candidate_at(i)->codec && strcmp(dv_candidate_at(i)->codec, text) == 0) {
            places_of_codec(profile, i, places);
            *places[0] = numbers[0], *places[1] = numbers[1];
        }
    return true;
}

static bool read_value(dv_json_cursor *json, const dv_graph *graph, dv_profile *profile, size_t index) {
    char text[TEXT_BYTES];
    double none, numbers[MOST_NUMBERS] = {0}, *places[MOST_NUMBERS];
    if (!read_record(json, "value", text, value_numbers, numbers))
        return false;
    if (index >= profile->value_count || strcmp(text, value_name(graph, index)) != 0)
        return dv_json_refuse(json, "a value of another network");
    places_of_value(profile, index, &none, places);
    for (int i = 0; i < MOST_NUMBERS; i++)
        *places[i] = numbers[i];
    return true;
}

static bool read_values(dv_json_cursor *json, const dv_graph *graph, dv_profile *profile) {
    size_t count = 0;
    for (dv_json_enter(json, '['); dv_json_next(json, ']'); count++)
        if (!read_value(json, graph, profile, count))
            return false;
    return !json->problem && (count == profile->value_count || dv_json_refuse(json, "values are missing"));
}

static bool read_scalar(dv_json_cursor *json, const char *name, dv_profile *profile) {
    for (int i = 0; i < SCALARS; i++)
        if (strcmp(scalars[i].name, name) == 0)
            return read_number(json, scalar_of(profile, i));
    return dv_json_skip(json);
}

static bool read_member(dv_json_cursor *json, const dv_graph *graph, dv_profile *profile, bool *has_values) {
    char name[TEXT_BYTES];
    uint64_t images;
    if (!dv_json_read_key(json, name, sizeof name))
        return false;
    if (strcmp(name, "values") == 0)
        return *has_values = read_values(json, graph, profile);
    if (strcmp(name, "codecs") == 0) {
        for (dv_json_enter(json, '['); dv_json_next(json, ']');)
            read_codec(json, profile);
        return !json->problem;
    }
    if (strcmp(name, "images") != 0)
        return read_scalar(json, name, profile);
    if (!dv_json_read_unsigned(json, &images))
        return false;
    profile->images = (size_t)images;
    return true;
}

dv_status dv_profile_parse(const char *name, const char *text, size_t bytes, const dv_graph *graph,
                           dv_profile **profile, dv_error *error) {
    dv_json_cursor json = dv_json_cursor_at(text, bytes);
    dv_profile *made;
    bool has_values = false;
    DV_TRY(dv_profile_allocate(graph->layer_count + 1, &made, error));
    for (dv_json_enter(&json, '{'); dv_json_next(&json, '}');)
        read_member(&json, graph, made, &has_values);
    if (dv_json_ended(&json) && has_values && made->images > 0 && made->images_seconds > 0) {
        *profile = made;
        return DV_OK;
    }
    dv_profile_free(made);
    return dv_fail(error, DV_ERROR_FORMAT,
                   "%s: byte %zu: %s: not a profile of this network: remove the file, and it is made anew",
                   dv_file_shown(name), dv_json_position(&json),
                   json.problem ? json.problem : "values, images or seconds are missing");
}

dv_status dv_profile_read(const dv_graph *graph, const char *path, dv_profile **profile, dv_error *error) {
    void *text;
    size_t bytes;
    DV_NEED(graph);
    DV_NEED(path);
    DV_NEED(profile);
    DV_TRY(dv_file_read(path, MOST_BYTES, &text, &bytes, error));
    dv_status status = dv_profile_parse(path, text, bytes, graph, profile, error);
    free(text);
    return status;
}
