/* division info: what this build is and what it found on this machine. */
#include "info.h"

#include "cli.h"
#include "options.h"

#include <division/info.h>
#include <division/parallel.h>
#include <division/threads.h>
#include <division/tools/json.h>
#include <division/version.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MODEL_BYTES = 128 };

/* What the machine is. Sizes are in bytes, 0 where they are not known. */
typedef struct machine {
    char model[MODEL_BYTES];
    double memory;
    double caches[3]; /* first-level data, second, third */
} machine;

static const char *const cache_names[] = {"l1d", "l2", "l3"};

/* Copies what follows the colon of a line of /proc/cpuinfo, without the newline. */
static void copy_value(const char *line, char model[MODEL_BYTES]) {
    const char *value = strchr(line, ':');
    if (value == NULL)
        return;
    value += strspn(value, ": \t");
    snprintf(model, MODEL_BYTES, "%.*s", (int)strcspn(value, "\n"), value);
}

/* Finds the processor's name, which not every architecture tells. */
static void find_model(char model[MODEL_BYTES]) {
    char line[512];
    snprintf(model, MODEL_BYTES, "unknown");
    FILE *stream = fopen("/proc/cpuinfo", "r");
    if (stream == NULL)
        return;
    while (fgets(line, sizeof line, stream) != NULL) {
        if (strncmp(line, "model name", 10) != 0)
            continue;
        copy_value(line, model);
        break;
    }
    fclose(stream);
}

static double positive(long value) {
    return value > 0 ? (double)value : 0;
}

static machine find_machine(void) {
    machine found = {.memory = positive(sysconf(_SC_PHYS_PAGES)) * positive(sysconf(_SC_PAGESIZE))};
    find_model(found.model);
#ifdef _SC_LEVEL1_DCACHE_SIZE
    found.caches[0] = positive(sysconf(_SC_LEVEL1_DCACHE_SIZE));
    found.caches[1] = positive(sysconf(_SC_LEVEL2_CACHE_SIZE));
    found.caches[2] = positive(sysconf(_SC_LEVEL3_CACHE_SIZE));
#endif
    return found;
}

/* ---- for people ---------------------------------------------------------------------------- */

static void print_instruction_sets(dv_isa picked) {
    char found[128] = "";
    size_t used = 0;
    for (dv_isa isa = 0; isa < DV_ISA_COUNT; isa++)
        if (dv_isa_available(isa) && used < sizeof found)
            used += (size_t)snprintf(found + used, sizeof found - used, "%s%s", used > 0 ? ", " : "", dv_isa_name(isa));
    cli_line("instruction sets", "%s", found);
    cli_line("in use", "%s", dv_isa_name(picked));
}

static void print_caches(const machine *found) {
    char text[3][CLI_BYTES_TEXT];
    if (found->caches[0] <= 0)
        return;
    for (int i = 0; i < 3; i++)
        cli_bytes_text(found->caches[i], text[i]);
    cli_line("caches", "%s first-level data, %s second, %s third", text[0], text[1], text[2]);
}

/* What several machines would train over. */
static void print_engine(void) {
    char name[DV_ENGINE_NAME_BYTES];
    dv_error error;
    cli_line("machines", "%s", dv_engine_name(name, &error) == DV_OK ? name : error.text);
}

static void print_table(const machine *found, dv_isa picked) {
    char memory[CLI_BYTES_TEXT];
    cli_line("version", "%s", dv_version());
    cli_line("processor", "%s", found->model);
    print_instruction_sets(picked);
    cli_line("threads", "%d", dv_threads());
    print_caches(found);
    cli_line("memory", "%s", cli_bytes_text(found->memory, memory));
    for (size_t i = 0; dv_library_name_at(i) != NULL; i++)
        cli_line(i == 0 ? "libraries" : "", "%s %s", dv_library_name_at(i), dv_library_version_at(i));
    print_engine();
}

/* ---- for machines -------------------------------------------------------------------------- */

/* A size in bytes, null if it is not known. */
static void write_size(dv_json *json, const char *key, double bytes) {
    if (bytes > 0)
        dv_json_unsigned(json, key, (uint64_t)bytes);
    else
        dv_json_null(json, key);
}

static void write_lists(dv_json *json, const machine *found) {
    dv_json_array(json, "isa_found");
    for (dv_isa isa = 0; isa < DV_ISA_COUNT; isa++)
        if (dv_isa_available(isa))
            dv_json_text(json, NULL, dv_isa_name(isa));
    dv_json_end(json);
    dv_json_object(json, "cache_bytes");
    for (int i = 0; i < 3; i++)
        write_size(json, cache_names[i], found->caches[i]);
    dv_json_end(json);
    dv_json_object(json, "libraries");
    for (size_t i = 0; dv_library_name_at(i) != NULL; i++)
        dv_json_text(json, dv_library_name_at(i), dv_library_version_at(i));
    dv_json_end(json);
}

static void write_engine(dv_json *json) {
    char name[DV_ENGINE_NAME_BYTES];
    if (dv_engine_name(name, NULL) == DV_OK)
        dv_json_text(json, "machines", name);
    else
        dv_json_null(json, "machines");
}

static void print_json(const machine *found, dv_isa picked) {
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "version", dv_version());
    dv_json_text(&json, "processor", found->model);
    dv_json_text(&json, "isa", dv_isa_name(picked));
    dv_json_integer(&json, "threads", dv_threads());
    write_size(&json, "memory_bytes", found->memory);
    write_lists(&json, found);
    write_engine(&json);
    dv_json_end(&json);
    dv_json_finish(&json, NULL); /* cli_finish tells of failed output */
}

int cli_info(int argc, char **argv) {
    info_passes passes = {.batch = 32};
    const dv_option options[] = {
        {"json", NULL, "print JSON: one object, or one per pass", CLI_FLAG(&passes.as_json)},
        {"passes", "MODEL", "instead, what computes the network's convolutions", CLI_TEXT(&passes.model)},
        {"batch", "N", "with --passes: images per batch", CLI_INTEGER(&passes.batch, 1, 1 << 20)},
        cli_word_option("precision", NULL, &passes.precision),
        cli_integer_option("threads", NULL, &passes.threads),
        cli_text_option("tune", NULL, &passes.tune),
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {.command = "info",
                             .summary =
                                 "Prints what this build is and what it found on this machine. With --passes, for each "
                                 "shape of\nconvolution in a network: what can compute it, how long that takes, and "
                                 "what is chosen.\n",
                             .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE)
        return code;
    if (passes.model != NULL)
        return info_print_passes(&passes);
    dv_isa picked = DV_ISA_SCALAR;
    dv_isa_picked(&picked, NULL); /* main has looked at what it says */
    machine found = find_machine();
    if (passes.as_json)
        print_json(&found, picked);
    else
        print_table(&found, picked);
    return cli_finish();
}
