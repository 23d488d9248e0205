/* division data fetch: downloads a published data set, checks it, unpacks it. */
#include "cli.h"
#include "digest.h"
#include "download.h"
#include "live.h"
#include "options.h"
#include "untar.h"

#include <division/data.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

typedef struct published {
    const char *name, *url, *md5;
} published;

static const published sets[] = {
    {"cifar10", "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"},
    {"cifar100", "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"},
};

typedef struct settings {
    const published *set;
    const char *folder, *url, *digest;
    int quiet;
} settings;

/* Whether the data set is in the folder, and can be opened. */
static int is_there(const settings *chosen, dv_error *error) {
    char text[PATH_BYTES];
    dv_dataset *data;
    snprintf(text, sizeof text, "%s:%s", chosen->set->name, chosen->folder);
    if (dv_dataset_open(text, &data, error) != DV_OK)
        return 0;
    dv_dataset_close(data);
    return 1;
}

/* A file that is not what it should be is removed: going on behind it would never become right. */
static int check_digest(const settings *chosen, const char *path) {
    char found[DIGEST_TEXT];
    dv_error error;
    if (digest_of_file(path, found, &error) != DV_OK)
        return cli_report(&error);
    if (strcasecmp(found, chosen->digest) == 0)
        return CLI_SUCCESS;
    unlink(path);
    if (chosen->digest != chosen->set->md5)
        return cli_fail("what came from %s is not what --md5 says: its MD5 is %s, not %s: check the digest, or call it "
                        "again",
                        chosen->url, found, chosen->digest);
    return cli_fail("what came from %s is not what was published: its MD5 is %s, not %s: call it again", chosen->url,
                    found, chosen->digest);
}

static int fetch(const settings *chosen) {
    char path[PATH_BYTES];
    cli_live line = cli_live_new(stdout, chosen->quiet);
    dv_error error;
    size_t files;
    snprintf(path, sizeof path, "%s/%s.tar.gz.part", chosen->folder, chosen->set->name);
    if (download(chosen->url, path, &line, &error) != DV_OK)
        return cli_report(&error);
    int code = check_digest(chosen, path);
    if (code != CLI_SUCCESS)
        return code;
    if (untar(path, chosen->folder, &files, &error) != DV_OK || !is_there(chosen, &error))
        return cli_report(&error);
    unlink(path);
    if (!chosen->quiet)
        printf("%zu files in %s: train with --data %s:%s\n", files, chosen->folder, chosen->set->name, chosen->folder);
    return cli_finish();
}

static int fetch_unless_there(const settings *chosen) {
    dv_error error;
    if (strlen(chosen->digest) != DIGEST_TEXT - 1 ||
        strspn(chosen->digest, "0123456789abcdefABCDEF") != DIGEST_TEXT - 1)
        return cli_wrong_call("--md5: '%s' is no MD5: give its %d hexadecimal digits", chosen->digest, DIGEST_TEXT - 1);
    if (strlen(chosen->folder) > PATH_BYTES / 2)
        return cli_wrong_call("data fetch: the name of the folder is too long");
    if (mkdir(chosen->folder, 0777) != 0 && errno != EEXIST)
        return cli_fail("could not make the folder %s: %s: check the path", chosen->folder, strerror(errno));
    if (!is_there(chosen, &error))
        return fetch(chosen);
    if (!chosen->quiet)
        printf("%s is in %s already\n", chosen->set->name, chosen->folder);
    return cli_finish();
}

int cli_data_fetch(int argc, char **argv) {
    settings chosen = {0};
    const dv_option options[] = {
        {"url", "URL", "download the archive from there", CLI_TEXT(&chosen.url)},
        {"md5", "HEX", "the archive's digest, if it is not the published one", CLI_TEXT(&chosen.digest)},
        {"quiet", NULL, "print nothing but errors", CLI_FLAG(&chosen.quiet)},
        CLI_OPTIONS_END,
    };
    const cli_usage usage = {
        .command = "data fetch",
        .operands = "cifar10|cifar100 DEST",
        .summary =
            "Downloads a data set into a folder, checks that it is what was published, and unpacks it. If it is\n"
            "interrupted, call it again and it goes on. Train with --data cifar10:DEST.\n",
        .options = options,
        .minimum_operands = 2,
        .maximum_operands = 2};
    cli_operands operands;
    int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE)
        return code;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strcmp(operands.at[0], sets[i].name) == 0)
            chosen.set = &sets[i];
    if (chosen.set == NULL)
        return cli_wrong_call("data fetch: '%s' is none that can be fetched: give cifar10 or cifar100", operands.at[0]);
    chosen.folder = operands.at[1];
    chosen.url = chosen.url != NULL ? chosen.url : chosen.set->url;
    chosen.digest = chosen.digest != NULL ? chosen.digest : chosen.set->md5;
    return fetch_unless_there(&chosen);
}
