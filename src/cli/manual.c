/* The manual page and completions, from the tables that commands are parsed by. A form is a table of functions. */
#include "manual.h"

#include <division/codec.h>
#include <division/graph.h>
#include <division/models.h>
#include <division/optimizer.h>
#include <division/version.h>

#include <stdio.h>
#include <string.h>

/* How one of them is written: before all commands, each command, after all. */
typedef struct manual_form {
    const char *name;
    void (*begin)(const cli_command *commands);
    void (*command)(const cli_usage *usage);
    void (*group)(const cli_group *group); /* its subcommands follow */
    void (*end)(const cli_command *commands);
} manual_form;

/* The form that is being written; NULL: none. */
static const manual_form *written;

/* ---- names that options take ----------------------------------------------------------------- */

static const char *model_name_at(size_t index) {
    const dv_model *model = dv_model_at(index);
    return model != NULL ? model->name : NULL;
}

/* Options whose values have names, which the library lists. */
static const struct {
    const char *option;
    const char *(*name_at)(size_t index);
} lists[] = {{"model", model_name_at}, {"method", dv_method_name_at}, {"optimizer", dv_optimizer_name_at}};

/* The index-th word that an option can be given, or NULL. */
static const char *word_at(const dv_option *option, size_t index) {
    if (option->kind == DV_OPTION_WORD) {
        for (size_t i = 0; i < index; i++)
            if (option->words[i] == NULL)
                return NULL;
        return option->words[index];
    }
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (strcmp(lists[i].option, option->name) == 0)
            return lists[i].name_at(index);
    return NULL;
}

/* Whether an argument is a path, "FILE" or "RUN"; others, numbers most of them, nobody can guess. */
static int is_path(const char *argument) {
    static const char *const paths[] = {"FILE", "FOLDER", "DIR", "RUN"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (strcmp(paths[i], argument) == 0)
            return 1;
    return 0;
}

static int takes_recipe(const cli_usage *usage) {
    return usage->operands != NULL && strstr(usage->operands, "RECIPE") != NULL;
}

/* What data may be called: a kind, and for most of them a path after it. */
static const char *const data_kinds[] = {"synthetic", "folder:", "cifar10:", "cifar100:", "lmdb:"};

enum { DATA_KINDS = sizeof data_kinds / sizeof *data_kinds };

static int takes_data(const dv_option *option) {
    char argument[CLI_OPTION_TEXT];
    return strcmp(cli_option_argument(option, argument), "DATA") == 0;
}

static int is_for_data(const cli_usage *usage) {
    return usage->operands != NULL && strcmp(usage->operands, "DATA") == 0;
}

/* ---- the page -------------------------------------------------------------------------------- */

/* Prints words so that roff takes them as they are. */
static void put_roff(const char *words) {
    int begins = 1;
    for (; *words != '\0'; words++) {
        if (begins && (*words == '.' || *words == '\''))
            printf("\\&");
        begins = *words == '\n';
        if (*words == '\\')
            printf("\\e");
        else if (*words == '-')
            printf("\\-");
        else
            putchar(*words);
    }
}

static void begin_page(const cli_command *commands) {
    printf(
        ".\\\" Made by 'division help --man' from the tables of options.\n"
        ".ds AD l\n" /* lines are not stretched: groff 1.23 asks for it before the title, those before it after */
        ".TH DIVISION 1 \"\" \"division %s\" \"User Commands\"\n.ad l\n"
        ".SH NAME\ndivision \\- train convolutional networks in a fraction of the memory\n"
        ".SH SYNOPSIS\n.B division\n.I COMMAND\n[\\fIoptions\\fR]\n"
        ".SH DESCRIPTION\nActivation maps are kept for the backward pass as block averages and two bits per element.\n"
        "The memory that a plan prints before the first step is the memory that the training takes.\n",
        dv_version());
    for (; commands->name != NULL; commands++)
        printf(".TP\n.B %s\n%s\n", commands->name, commands->help);
    printf(".SH COMMANDS\n");
}

static void put_page_option(const dv_option *option) {
    char argument[CLI_OPTION_TEXT], preset[CLI_OPTION_TEXT];
    printf(".TP\n\\fB");
    put_roff(option->name[1] != '\0' ? "--" : "-");
    put_roff(option->name);
    printf("\\fR");
    if (cli_option_argument(option, argument)[0] != '\0') {
        printf(" \\fI");
        put_roff(argument);
        printf("\\fR");
    }
    printf("\n");
    put_roff(option->help);
    if (cli_option_preset(option, preset)[0] != '\0') {
        printf(" (default ");
        put_roff(preset);
        printf(")");
    }
    printf("\n");
}

/* Prints a line of details, folded below its own indentation: roff leaves lines of a block as long as they are. */
static void put_page_line(const char *line, size_t length) {
    enum { COLUMNS = 72, FOLDED = 2 };
    char text[COLUMNS + 1];
    int indentation = (int)strspn(line, " ");
    for (int hanging = 0; length > 0;) {
        size_t room = COLUMNS - (size_t)hanging, shown = length;
        for (size_t i = room; length > room && i > (size_t)indentation && shown == length; i--)
            if (line[i] == ' ')
                shown = i;
        if (shown > room)
            shown = room;
        snprintf(text, sizeof text, "%.*s", (int)shown, line);
        printf("%*s", hanging, "");
        put_roff(text);
        printf("\n");
        line += shown;
        length -= shown;
        for (; length > 0 && *line == ' '; line++)
            length--;
        hanging = indentation + FOLDED < COLUMNS / 2 ? indentation + FOLDED : FOLDED;
    }
}

static void put_page_details(const char *details) {
    for (const char *end; (end = strchr(details, '\n')) != NULL; details = end + 1)
        if (end == details)
            printf("\n");
        else
            put_page_line(details, (size_t)(end - details));
    if (*details != '\0')
        put_page_line(details, strlen(details));
}

static void put_page_command(const cli_usage *usage) {
    printf(".SS division %s", usage->command);
    if (usage->operands != NULL) {
        printf(" ");
        put_roff(usage->operands);
    }
    printf(" [options]\n");
    put_roff(usage->summary);
    for (const dv_option *option = usage->options; option->name != NULL; option++)
        put_page_option(option);
    if (usage->details == NULL)
        return;
    printf(".PP\n.nf\n");
    put_page_details(usage->details);
    printf(".fi\n");
}

static void end_page(const cli_command *commands) {
    (void)commands;
    printf(".SH ENVIRONMENT\n"
           ".TP\n.B DV_ISA\nuse this instruction set; 'division info' lists those there are\n"
           ".TP\n.B OMP_NUM_THREADS\nuse so many threads\n"
           ".TP\n.B OMP_WAIT_POLICY\nhow threads wait for each other: asleep after a moment, unless you say active\n"
           ".SH EXIT STATUS\n0, 1 for a failure, 2 for a wrong call, 130 if it was interrupted.\n");
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void begin_bash(const cli_command *commands) {
    printf("# Completion of division for bash. Made by 'division help --bash' from the tables of options.\n\n"
           "# _division_words COMMAND [OPTION]: what can follow.\n_division_words() {\n    case $1 in\n    '') echo '");
    for (; commands->name != NULL; commands++)
        printf("%s ", commands->name);
    printf("help' ;;\n    help) _division_words '' ;;\n");
}

/* COMMAND is followed by a word for which data may be given. */
static void put_bash_data(const char *command, const char *word) {
    printf("    '%s %s') echo '", command, word);
    for (size_t i = 0; i < DATA_KINDS; i++)
        printf("%s%s", i > 0 ? " " : "", data_kinds[i]);
    printf("' ;;\n");
}

static void put_bash_values(const cli_usage *usage) {
    for (const dv_option *option = usage->options; option->name != NULL; option++) {
        if (takes_data(option))
            put_bash_data(usage->command, "--data");
        if (word_at(option, 0) == NULL)
            continue;
        printf("    '%s --%s') echo '", usage->command, option->name);
        for (size_t i = 0; word_at(option, i) != NULL; i++)
            printf("%s%s", i > 0 ? " " : "", word_at(option, i));
        printf("' ;;\n");
    }
}

static void put_bash_command(const cli_usage *usage) {
    put_bash_values(usage);
    if (takes_recipe(usage))
        printf("    '%s OPERAND') \"${COMP_WORDS[0]}\" help --recipes 2>/dev/null ;;\n", usage->command);
    if (is_for_data(usage))
        put_bash_data(usage->command, "OPERAND");
    printf("    '%s') echo '", usage->command);
    for (const dv_option *option = usage->options; option->name != NULL; option++)
        printf("%s%s ", option->name[1] != '\0' ? "--" : "-", option->name);
    printf("--help' ;;\n");
}

static void put_bash_group(const cli_group *group) {
    printf("    '%s') echo '", group->name);
    for (const cli_command *command = group->commands; command->name != NULL; command++)
        printf("%s ", command->name);
    printf("--help' ;;\n");
}

static void end_bash(const cli_command *commands) {
    (void)commands;
    printf("    esac\n}\n\n"
           "_division() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command= words\n"
           "    ((COMP_CWORD == 1)) || command=${COMP_WORDS[1]}\n"
           "    ((COMP_CWORD < 3)) || [[ -z $(_division_words \"$command ${COMP_WORDS[2]}\") ]] ||\n"
           "        [[ ${COMP_WORDS[2]} == -* ]] || command+=\" ${COMP_WORDS[2]}\"\n"
           "    words=$(_division_words \"$command $before\")\n"
           "    if [[ $before != -* || -z $words ]]; then # not the value of an option that has names for them\n"
           "        words=$(_division_words \"$command\")\n"
           "        # What is no option may be a recipe or a kind of data; else, and behind a colon, it is a file.\n"
           "        [[ $word == -* || $words != -* ]] ||\n"
           "            words=$([[ $before == -* || $before == : ]] || _division_words \"$command OPERAND\")\n"
           "    fi\n"
           "    COMPREPLY=()\n"
           "    ! words=$(compgen -W \"$words\" -- \"$word\") || mapfile -t COMPREPLY <<<\"$words\"\n"
           "    [[ ${COMPREPLY[*]} != *: ]] || compopt -o nospace 2>/dev/null\n" // a path follows
           "}\n"
           "complete -o default -F _division division\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Words inside of an argument of _arguments, which is in single quotes. */
static void put_zsh(const char *words) {
    for (; *words != '\0'; words++)
        if (*words == '\'')
            printf("'\\''");
        else if (strchr("[]:\\", *words) != NULL)
            printf("\\%c", *words);
        else
            putchar(*words);
}

static void put_zsh_list(const cli_command *commands) {
    printf("        local -a list=(\n");
    for (; commands->name != NULL; commands++) {
        printf("            '%s:", commands->name);
        put_zsh(commands->help);
        printf("'\n");
    }
    printf("        )\n");
}

static void begin_zsh(const cli_command *commands) {
    printf("#compdef division\n# Made by 'division help --zsh' from the tables of options.\n\n"
           "local command=$words[2]\n[[ $command != (data|bench) ]] || command+=\" $words[3]\"\n"
           "if ((CURRENT == 2)); then\n    command=\nfi\ncase $command in\n    ''|help)\n");
    put_zsh_list(commands);
    printf("        [[ -n $command ]] || list+=('help:explain a command')\n        ((CURRENT > 3)) || _describe "
           "command list\n"
           "        ;;\n");
}

/* What may stand behind "--data=": a kind, and a path after it. */
static void put_zsh_data(void) {
    printf("{ if compset -P \"*\\:\"; then _files; else compadd -S \"\" --");
    for (size_t i = 0; i < DATA_KINDS; i++) {
        printf(" ");
        put_zsh(data_kinds[i]);
    }
    printf("; fi }");
}

static void put_zsh_argument(const dv_option *option) {
    char argument[CLI_OPTION_TEXT];
    cli_option_argument(option, argument);
    printf(":");
    put_zsh(argument);
    printf(":");
    for (size_t i = 0; word_at(option, i) != NULL; i++)
        printf("%s%s", i > 0 ? " " : "(", word_at(option, i));
    if (word_at(option, 0) != NULL)
        printf(")");
    else if (takes_data(option))
        put_zsh_data();
    else
        printf(is_path(argument) ? "_files" : " ");
}

static void put_zsh_option(const dv_option *option) {
    int is_short = option->name[1] == '\0';
    printf(" \\\n            '%s%s%s[", is_short ? "-" : "--", option->name,
           option->kind == DV_OPTION_FLAG || is_short ? "" : "=");
    put_zsh(option->help);
    printf("]");
    if (option->kind != DV_OPTION_FLAG)
        put_zsh_argument(option);
    printf("'");
}

static void put_zsh_command(const cli_usage *usage) {
    printf("    '%s')\n        _arguments '--help[print what there is]'", usage->command);
    for (const dv_option *option = usage->options; option->name != NULL; option++)
        put_zsh_option(option);
    printf(" \\\n            ");
    if (takes_recipe(usage))
        printf("'*:recipe or file: _alternative \"recipes\\:recipe\\:($($words[1] help --recipes 2>/dev/null))\" "
               "\"files\\:file\\:_files\"'");
    else if (is_for_data(usage)) {
        printf("'*:data:");
        put_zsh_data();
        printf("'");
    } else
        printf("'*:file:_files'");
    printf("\n        ;;\n");
}

static void put_zsh_group(const cli_group *group) {
    printf("    '%s '*)\n        if ((CURRENT == 3)); then\n", group->name);
    put_zsh_list(group->commands);
    printf("        _describe command list\n        fi\n        ;|\n");
}

static void end_zsh(const cli_command *commands) {
    (void)commands;
    printf("esac\n");
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const manual_form forms[] = {
    {"--man", begin_page, put_page_command, NULL, end_page},
    {"--bash", begin_bash, put_bash_command, put_bash_group, end_bash},
    {"--zsh", begin_zsh, put_zsh_command, put_zsh_group, end_zsh},
};

/* Has every command tell its usage. */
static void call_all(const cli_command *commands) {
    for (; commands->name != NULL; commands++) {
        char name[64], flag[] = "--help", *call[] = {name, flag, NULL};
        snprintf(name, sizeof name, "%s", commands->name);
        (void)commands->call(2, call);
    }
}

int cli_manual_command(const cli_usage *usage) {
    if (written != NULL)
        written->command(usage);
    return written != NULL;
}

int cli_manual_group(const cli_group *group) {
    if (written == NULL)
        return 0;
    if (written->group != NULL)
        written->group(group);
    call_all(group->commands);
    return 1;
}

int cli_manual(const cli_command *commands, const char *form) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i].name, form) != 0)
            continue;
        written = &forms[i];
        written->begin(commands);
        call_all(commands);
        written->end(commands);
        return cli_finish();
    }
    return cli_wrong_call("help: '%s': give a command, or --man, --bash or --zsh", form);
}
