/* What the tables of commands and options make besides the help: the manual page and completions of shells.
 *
 * Every command is called with --help, and the usage that it would print comes here instead. */
#ifndef DV_CLI_MANUAL_H
#define DV_CLI_MANUAL_H

#include "cli.h"
#include "options.h"

/* "division help --man", "--bash", "--zsh": prints the page, or the file of completions. Returns an exit code. */
int cli_manual(const cli_command *commands, const char *form);

/* Take the usage of a command, or of a group of them, if a manual is being written. */
int cli_manual_command(const cli_usage *usage);
int cli_manual_group(const cli_group *group);

#endif
