/* What a test found, as tables, JSON and CSV. */
#include "eval.h"

#include "cli.h"

#include <division/tools/text.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 80, CLASS_WIDTH = 24, LEAST_CELL = 4, MOST_CONFUSIONS = 20, IMAGE_BYTES = 256 };

const char *eval_class_name(const eval_findings *found, size_t label) {
    const char *name = dv_dataset_class_name(found->dataset, label);
    return name != NULL ? name : dv_predictor_class_name(found->predictor, label);
}

/* The name of a class, cut to so many characters. */
static char *class_text(const eval_findings *found, size_t label, size_t most, char text[CLI_CLASS_TEXT]) {
    return dv_text_cut(cli_class_text(eval_class_name(found, label), label, text), most);
}

static double percent(size_t part, size_t all) {
    return 100.0 * (double)part / (double)all;
}

/* ---- classes ------------------------------------------------------------------------------- */

void eval_print_classes(const eval_findings *found) {
    const eval_tally *t = &found->tally;
    char text[CLI_CLASS_TEXT];
    size_t count;
    printf("\n%-*s  %8s  %8s  %s\n", CLASS_WIDTH, "class", "images", "top-1", "mostly taken for");
    for (size_t i = 0; i < t->classes; i++) {
        if (t->images[i] == 0)
            continue;
        class_text(found, i, CLASS_WIDTH, text);
        printf("%-*s  %8zu  %6.1f %%", cli_width(text, CLASS_WIDTH), text, t->images[i],
               percent(t->correct[i], t->images[i]));
        size_t other = t->matrix != NULL ? eval_tally_confused(t, i, &count) : i;
        if (other != i)
            printf("  %s, %zu", class_text(found, other, CLASS_WIDTH, text), count);
        printf("\n");
    }
}

void eval_json_classes(const eval_findings *found, dv_json *json) {
    const eval_tally *t = &found->tally;
    dv_json_array(json, "classes");
    for (size_t i = 0; i < t->classes; i++) {
        if (t->images[i] == 0)
            continue;
        dv_json_object(json, NULL);
        dv_json_unsigned(json, "label", i);
        dv_json_text(json, "class", eval_class_name(found, i));
        dv_json_unsigned(json, "images", t->images[i]);
        dv_json_number(json, "top1", percent(t->correct[i], t->images[i]));
        dv_json_end(json);
    }
    dv_json_end(json);
}

/* ---- the matrix ---------------------------------------------------------------------------- */

/* Characters of a column: as wide as the largest count, and a gap. */
static size_t cell_width(const eval_tally *t) {
    char text[24];
    uint32_t most = 0;
    for (size_t i = 0; i < t->classes * t->classes; i++)
        most = t->matrix[i] > most ? t->matrix[i] : most;
    size_t width = (size_t)snprintf(text, sizeof text, "%u", most) + 1;
    return width > LEAST_CELL ? width : LEAST_CELL;
}

/* Longest name, up to what a table has room for. */
static size_t name_width(const eval_findings *found) {
    char text[CLI_CLASS_TEXT];
    size_t width = 5;
    for (size_t i = 0; i < found->tally.classes; i++) {
        size_t length = dv_text_characters(class_text(found, i, CLASS_WIDTH, text));
        width = length > width ? length : width;
    }
    return width;
}

static void print_whole(const eval_findings *found, size_t name, size_t cell) {
    const eval_tally *t = &found->tally;
    char text[CLI_CLASS_TEXT];
    printf("\nimages of a class in its row, by what they were taken for\n%*s", (int)(name + 4), "");
    for (size_t i = 0; i < t->classes; i++)
        printf("%*zu", (int)cell, i);
    printf("\n");
    for (size_t i = 0; i < t->classes; i++) {
        class_text(found, i, name, text);
        printf("%3zu %-*s", i, cli_width(text, name), text);
        for (size_t k = 0; k < t->classes; k++)
            printf("%*u", (int)cell, t->matrix[i * t->classes + k]);
        printf("\n");
    }
}

typedef struct confusion {
    size_t label, predicted;
    uint32_t count;
} confusion;

/* Keeps the most frequent ones, the first found of equals first. */
static size_t keep(confusion *kept, size_t count, confusion next) {
    size_t at = count;
    while (at > 0 && next.count > kept[at - 1].count)
        at--;
    if (at == MOST_CONFUSIONS)
        return count;
    count += count < MOST_CONFUSIONS;
    memmove(kept + at + 1, kept + at, (count - at - 1) * sizeof *kept);
    kept[at] = next;
    return count;
}

static void print_frequent(const eval_findings *found) {
    const eval_tally *t = &found->tally;
    confusion kept[MOST_CONFUSIONS];
    char text[CLI_CLASS_TEXT], other[CLI_CLASS_TEXT];
    size_t count = 0;
    for (size_t i = 0; i < t->classes * t->classes; i++)
        if (i / t->classes != i % t->classes && t->matrix[i] > 0)
            count = keep(kept, count, (confusion){i / t->classes, i % t->classes, t->matrix[i]});
    printf("\nthe matrix of %zu classes is wider than %d columns: --json and --confusion-png have all of it\n",
           t->classes, COLUMNS);
    printf("%8s  %-*s  %s\n", "images", CLASS_WIDTH, "of", "were taken for");
    for (size_t i = 0; i < count; i++) {
        class_text(found, kept[i].label, CLASS_WIDTH, text);
        class_text(found, kept[i].predicted, CLASS_WIDTH, other);
        printf("%8u  %-*s  %s\n", kept[i].count, cli_width(text, CLASS_WIDTH), text, other);
    }
}

void eval_print_matrix(const eval_findings *found) {
    if (found->tally.matrix == NULL) {
        printf("\n%zu classes are too many for a matrix\n", found->tally.classes);
        return;
    }
    size_t name = name_width(found), cell = cell_width(&found->tally);
    if (4 + name + found->tally.classes * cell <= COLUMNS)
        print_whole(found, name, cell);
    else
        print_frequent(found);
}

void eval_json_matrix(const eval_findings *found, dv_json *json) {
    const eval_tally *t = &found->tally;
    if (t->matrix == NULL) {
        dv_json_null(json, "confusion");
        return;
    }
    dv_json_array(json, "confusion");
    for (size_t i = 0; i < t->classes; i++) {
        dv_json_array(json, NULL);
        for (size_t k = 0; k < t->classes; k++)
            dv_json_unsigned(json, NULL, t->matrix[i * t->classes + k]);
        dv_json_end(json);
    }
    dv_json_end(json);
}

/* ---- mistakes ------------------------------------------------------------------------------ */

static void write_mistake(const eval_findings *found, const eval_mistake *m, FILE *stream) {
    char name[IMAGE_BYTES] = "", text[CLI_CLASS_TEXT];
    (void)dv_dataset_image_name(found->dataset, found->split, m->index, name, sizeof name, NULL);
    cli_csv_field(stream, name);
    fputc(',', stream);
    cli_csv_field(stream, class_text(found, m->label, CLI_CLASS_TEXT, text));
    fputc(',', stream);
    cli_csv_field(stream, class_text(found, m->predicted, CLI_CLASS_TEXT, text));
    fprintf(stream, ",%.6g,%.6g\n", (double)m->truth, (double)m->probability);
}

dv_status eval_write_mistakes(const eval_findings *found, const char *path, dv_error *error) {
    FILE *stream = fopen(path, "w");
    if (stream == NULL)
        return cli_error(error, DV_ERROR_IO, "could not write %.100s: %s: check the name", path, strerror(errno));
    fprintf(stream, "image,class,taken_for,probability_of_class,probability_of_taken_for\n");
    for (size_t i = 0; i < found->tally.mistake_count; i++)
        write_mistake(found, &found->tally.mistakes[i], stream);
    int failed = ferror(stream);
    if (fclose(stream) == 0 && !failed)
        return DV_OK;
    return cli_error(error, DV_ERROR_IO, "could not write %.100s: check the disk", path);
}
