/* Images to measure with: few examples, over and over, because a batch of others would take memory a second time. */
#ifndef DV_CLI_EXAMPLES_H
#define DV_CLI_EXAMPLES_H

#include <division/graph.h>

enum { CLI_EXAMPLES = 4 };

typedef struct cli_examples {
    char *at[CLI_EXAMPLES]; /* images as the run takes them; owned */
} cli_examples;

/* Makes examples for a run. Exit codes; free them in any case. */
int cli_examples_make(dv_run *run, cli_examples *examples);
void cli_examples_free(cli_examples *examples);

/* Fills in the next batch: example and label of each image go by its number. */
void cli_examples_fill(const cli_examples *examples, dv_run *run);

#endif
