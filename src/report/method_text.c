/* Shortest names of methods: an option is taken away where the method without it is the same. */
#include "report/method_text.h"

#include "graph/method.h"

#include <stdbool.h>
#include <string.h>

enum { METHOD_BYTES = 512 };

static bool is_same(const dv_method *a, const dv_method *b) {
    return a->kind == b->kind && a->codec.kind == b->codec.kind &&
           memcmp(a->options, b->options, sizeof a->options) == 0 &&
           memcmp(a->codec.options, b->codec.options, sizeof a->codec.options) == 0;
}

/* Copies a method without the item from `begin` to `end`, and the comma or colon that goes with it. */
static void copy_without(const char *method, size_t begin, size_t end, char shorter[METHOD_BYTES]) {
    bool last = method[end] == '\0';
    memcpy(shorter, method, last ? begin - 1 : begin);
    strcpy(shorter + (last ? begin - 1 : begin), last ? "" : method + end + 1);
}

void dv_method_shorten(char *method) {
    dv_method whole, without;
    char shorter[METHOD_BYTES];
    size_t begin = strcspn(method, ":");
    if (strlen(method) >= METHOD_BYTES || dv_method_parse(method, &whole, NULL) != DV_OK)
        return;
    begin += method[begin] == ':';
    while (method[begin] != '\0') {
        size_t end = begin + strcspn(method + begin, ",");
        copy_without(method, begin, end, shorter);
        if (dv_method_parse(shorter, &without, NULL) == DV_OK && is_same(&whole, &without))
            strcpy(method, shorter);
        else
            begin = end + (method[end] == ',');
        if (strlen(method) < begin)
            break;
    }
}
