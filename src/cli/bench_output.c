/* Lines of a benchmark, and the file that they are in. */
#include "bench_session.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEY_BYTES = 64, MOST_FILE_BYTES = 1 << 26 };

/* ---- opening ------------------------------------------------------------------------------- */

static int no_memory(void) {
    return cli_fail("no memory for the lines of a benchmark: free some");
}

static int could_not(const char *what, const char *path) {
    return cli_fail("could not %s %s: %s: give another file with --out", what, path, strerror(errno));
}

static int read_whole(bench_output *output, const char *path, size_t bytes) {
    output->text = malloc(bytes + 1);
    if (output->text == NULL)
        return no_memory();
    for (ssize_t got = 1; output->bytes < bytes && got > 0; output->bytes += got > 0 ? (size_t)got : 0) {
        got = read(output->descriptor, output->text + output->bytes, bytes - output->bytes);
        if (got < 0)
            return could_not("read", path);
    }
    output->text[output->bytes] = '\0';
    return CLI_SUCCESS;
}

/* Drops what stands behind the last newline, from the file too. */
static int drop_cut_line(bench_output *output, const char *path) {
    size_t whole = output->bytes;
    while (whole > 0 && output->text[whole - 1] != '\n')
        whole--;
    if (whole == output->bytes)
        return CLI_SUCCESS;
    if (whole == 0 && output->text[0] != '{')
        return cli_fail("%s is no file of a benchmark's lines: give another one with --out", path);
    output->text[output->bytes = whole] = '\0';
    return ftruncate(output->descriptor, (off_t)whole) == 0 ? CLI_SUCCESS : could_not("write", path);
}

static int read_lines(bench_output *output, const char *path) {
    struct stat status;
    if (fstat(output->descriptor, &status) != 0)
        return could_not("read", path);
    if (!S_ISREG(status.st_mode) || status.st_size > MOST_FILE_BYTES)
        return cli_fail("%s is no file of a benchmark's lines: give another one with --out", path);
    if (flock(output->descriptor, LOCK_EX | LOCK_NB) != 0)
        return cli_fail("%s: another call writes to it: wait for its end, or give another file with --out", path);
    int code = read_whole(output, path, (size_t)status.st_size);
    return code == CLI_SUCCESS ? drop_cut_line(output, path) : code;
}

int bench_output_open(bench_output *output, const char *path) {
    *output = (bench_output){.descriptor = -1};
    if (path == NULL)
        return CLI_SUCCESS;
    output->descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (output->descriptor < 0)
        return could_not("open", path);
    int code = read_lines(output, path);
    if (code != CLI_SUCCESS)
        bench_output_close(output);
    return code;
}

void bench_output_close(bench_output *output) {
    if (output->descriptor >= 0)
        close(output->descriptor);
    free(output->text);
    *output = (bench_output){.descriptor = -1};
}

/* ---- lines --------------------------------------------------------------------------------- */

const char *bench_output_find(const bench_output *output, const char *head) {
    const char *found = NULL;
    for (const char *line = output->text; line != NULL && *line != '\0';) {
        if (strncmp(line, head, strlen(head)) == 0)
            found = line;
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return found;
}

int bench_output_add(bench_output *output, const char *line) {
    size_t length = strlen(line);
    char *text = realloc(output->text, output->bytes + length + 2);
    if (text == NULL)
        return no_memory();
    output->text = text;
    text += output->bytes;
    memcpy(text, line, length);
    strcpy(text + length, "\n");
    output->bytes += length + 1;
    if (output->descriptor >= 0 &&
        (write(output->descriptor, text, length + 1) != (ssize_t)length + 1 || fsync(output->descriptor) != 0))
        return cli_fail("could not write a line of a benchmark: %s: make room and call it again", strerror(errno));
    return CLI_SUCCESS;
}

/* Where the value of a key stands in the line, or NULL. */
static const char *value_of(const char *line, const char *key) {
    char quoted[KEY_BYTES];
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    const char *at = strstr(line, quoted), *end = strchr(line, '\n');
    return at != NULL && (end == NULL || at < end) ? at + strlen(quoted) : NULL;
}

double bench_line_number(const char *line, const char *key) {
    const char *at = value_of(line, key);
    char *end;
    double number = at != NULL ? strtod(at, &end) : 0;
    return at != NULL && end != at ? number : NAN;
}

void bench_line_text(const char *line, const char *key, char *text, size_t bytes) {
    const char *at = value_of(line, key);
    int quoted = at != NULL && *at == '"';
    snprintf(text, bytes, "%.*s", quoted ? (int)strcspn(at + 1, "\"\n") : 0, quoted ? at + 1 : "");
}
