/* division methods: the methods there are, with their options and what these take. */
#include "cli.h"
#include "options.h"

#include <division/graph.h>
#include <division/tools/json.h>
#include <stdio.h>

static void print_options(size_t method) {
    const dv_option *option;
    char takes[DV_OPTION_TAKES_BYTES];
    for (size_t i = 0; (option = dv_method_option_at(method, i)); i++)
        printf("    %-10s %s: %s (default %s)\n", option->name, option->help, dv_option_takes(option, takes),
               option->preset);
}

static void print_json_option(dv_json *json, const dv_option *option) {
    dv_json_object(json, NULL);
    dv_json_text(json, "name", option->name);
    dv_json_text(json, "help", option->help);
    dv_json_text(json, "default", option->preset);
    if (option->words) {
        dv_json_array(json, "words");
        for (size_t i = 0; option->words[i]; i++)
            dv_json_text(json, NULL, option->words[i]);
        dv_json_end(json);
    } else {
        dv_json_number(json, "minimum", option->minimum);
        dv_json_number(json, "maximum", option->maximum);
        dv_json_boolean(json, "power_of_two", option->kind == DV_OPTION_POWER);
    }
    dv_json_end(json);
}

static void print_json(size_t method) {
    const dv_option *option;
    dv_json json;
    dv_json_to_file(&json, stdout);
    dv_json_object(&json, NULL);
    dv_json_text(&json, "method", dv_method_name_at(method));
    dv_json_text(&json, "help", dv_method_help_at(method));
    dv_json_array(&json, "options");
    for (size_t i = 0; (option = dv_method_option_at(method, i)); i++)
        print_json_option(&json, option);
    dv_json_end(&json);
    dv_json_end(&json);
    (void)dv_json_finish(&json, NULL); /* cli_finish tells */
}

int cli_methods(int argc, char **argv) {
    int json = 0;
    const dv_option options[] = {
        {"json", NULL, "print one JSON object per method", CLI_FLAG(&json)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {.command = "methods",
                             .summary =
                                 "Lists the methods: the ways in which values survive from forward to backward.\n"
                                 "Options stand behind a colon: division:bits=4,recompute=norms.\n",
                             .options = options};
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE)
        return code;
    for (size_t i = 0; dv_method_name_at(i); i++) {
        if (json) {
            print_json(i);
            continue;
        }
        printf("%-10s %s\n", dv_method_name_at(i), dv_method_help_at(i));
        print_options(i);
    }
    return cli_finish();
}
