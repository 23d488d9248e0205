/* The table of methods, and methods from text. A new one is a file and a line here. */
#include "graph/method.h"

#include "base/option_text.h"
#include "base/sizes.h"
#include "base/status.h"
#include "codec/kind.h"

#include <stdio.h>
#include <string.h>

extern const dv_method_kind dv_method_none, dv_method_division, dv_method_checkpoint, dv_method_swap, dv_method_bf16,
    dv_method_blpa, dv_method_actnn, dv_method_acgc, dv_method_lean, dv_method_mixed;

static const dv_method_kind *const kinds[] = {
    &dv_method_none, &dv_method_division, &dv_method_checkpoint, &dv_method_swap, &dv_method_bf16,
    &dv_method_blpa, &dv_method_actnn,    &dv_method_acgc,       &dv_method_lean,
};

enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

const dv_method_kind *dv_method_added;

/* Kinds that are no entry of the table: people do not write their texts. */
static const dv_method_kind *find_unlisted(const char *text, const char **rest) {
    if (dv_method_added && dv_option_text_names(text, dv_method_added->name, rest))
        return dv_method_added;
    return dv_option_text_names(text, dv_method_mixed.name, rest) ? &dv_method_mixed : NULL;
}

const char *dv_method_name_at(size_t index) {
    return index < KIND_COUNT ? kinds[index]->name : NULL;
}

const char *dv_method_help_at(size_t index) {
    return index < KIND_COUNT ? kinds[index]->help : NULL;
}

const dv_option *dv_method_option_at(size_t method, size_t index) {
    if (method >= KIND_COUNT)
        return NULL;
    const dv_method_kind *kind = kinds[method];
    dv_codec codec;
    size_t packed = kind->codec && dv_codec_parse(kind->codec, &codec, NULL) == DV_OK ? codec.kind->option_count : 0;
    if (index < packed)
        return &codec.kind->options[index];
    return index - packed < kind->option_count ? &kind->options[index - packed] : NULL;
}

static dv_status find_kind(const char *text, const dv_method_kind **kind, const char **rest, dv_error *error) {
    char known[200] = "";
    *kind = find_unlisted(text, rest);
    if (*kind)
        return DV_OK;
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (dv_option_text_names(text, kinds[i]->name, rest)) {
            *kind = kinds[i];
            return DV_OK;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", kinds[i]->name);
    }
    return dv_fail(error, DV_ERROR_OPTION, "unknown method \"%.*s\": there are %s",
                   (int)dv_smaller(strcspn(text, ":"), 40), text, known);
}

/* A method that packs takes its codec's options and its own. */
dv_status dv_method_parse(const char *text, dv_method *method, dv_error *error) {
    dv_method made = {0};
    const char *rest;
    dv_option_table tables[2];
    size_t count = 0;
    DV_TRY(find_kind(text, &made.kind, &rest, error));
    if (made.kind->takes_text) {
        made.text = rest ? rest : "";
        *method = made;
        return DV_OK;
    }
    if (made.kind->codec) {
        DV_TRY(dv_codec_parse(made.kind->codec, &made.codec, error));
        tables[count++] =
            (dv_option_table){made.codec.kind->options, made.codec.kind->option_count, made.codec.options};
    }
    tables[count++] = (dv_option_table){made.kind->options, made.kind->option_count, made.options};
    dv_option_text_preset(&tables[count - 1]);
    DV_TRY(dv_option_text_parse(made.kind->name, rest, tables, count, error));
    if (made.kind->codec)
        DV_TRY(dv_codec_check(&made.codec, error));
    *method = made;
    return DV_OK;
}
