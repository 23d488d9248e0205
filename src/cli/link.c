/* Networks on the command line. */
#include "link.h"

#include "cli.h"
#include "options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    const char *name;
    double factor;
} unit;

/* Bits have a small b, as in what networks are sold by. */
static const unit rates[] = {{"Gb/s", 1e9 / 8}, {"Mb/s", 1e6 / 8}, {"GB/s", 1e9}, {"MB/s", 1e6}, {NULL, 0}};
static const unit times[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};

/* What the text says in the unit at its end, or NaN. */
static double read_quantity(const char *text, const unit *units) {
    char *end;
    double number = strtod(text, &end);
    for (; end != text && units->name != NULL; units++)
        if (strcmp(end, units->name) == 0)
            return number * units->factor;
    return NAN;
}

int cli_link_read(const char *bandwidth, const char *latency, dv_link *link) {
    *link = (dv_link){read_quantity(bandwidth, rates), read_quantity(latency, times)};
    if (!(link->bandwidth >= 1e3 && link->bandwidth <= 1e15))
        return cli_wrong_call("--bandwidth: '%s' is not what it takes: give what a machine sends in a second, as "
                              "10Gb/s, 100Mb/s or 1.2GB/s",
                              bandwidth);
    if (!(link->latency >= 0 && link->latency <= 1e3))
        return cli_wrong_call("--latency: '%s' is not what it takes: give how long a message takes, as 50us or 0.2ms",
                              latency);
    return CLI_CONTINUE;
}

const char *cli_seconds_text(double seconds, char text[CLI_SECONDS_TEXT]) {
    static const unit shown[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};
    size_t i = 0;
    while (i < 2 && seconds < shown[i].factor)
        i++;
    snprintf(text, CLI_SECONDS_TEXT, "%.3g %s", seconds / shown[i].factor, shown[i].name);
    return text;
}
