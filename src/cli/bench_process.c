/* Processes that train, seen from the one that started them: a pipe to each with the number of steps it is to make,
 * and one from it with what they took. */
#include "bench_paper.h"

#include "cli.h"
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { READ_END, WRITE_END, ARGUMENT_BYTES = BENCH_METHODS_BYTES + 32, LINE_BYTES = 256, OWN_PATH_BYTES = 4096 };

/* ---- starting ------------------------------------------------------------------------------ */

/* No process but the worker may hold an end of its pipes, or nobody would see them end: all are closed on exec. */
static int open_pipe(int ends[2]) {
    return pipe(ends) == 0 && fcntl(ends[READ_END], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(ends[WRITE_END], F_SETFD, FD_CLOEXEC) == 0;
}

static void close_pipe(const int ends[2]) {
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

/* The program's own file. Without /proc it is where the program was called. */
static const char *own_path(void) {
    static const char usual[] = "/proc/self/exe";
    static char path[OWN_PATH_BYTES];
    if (access(usual, X_OK) == 0)
        return usual;
    start_program_path(path, sizeof path);
    return path;
}

/* Calls this program again: its standard input and output are the two pipes' other ends. Returns errno's numbers. */
static int spawn(pid_t *process, char *const *arguments, const int requests[2], const int answers[2]) {
    posix_spawn_file_actions_t actions;
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure != 0)
        return failure;
    failure = posix_spawn_file_actions_adddup2(&actions, requests[READ_END], STDIN_FILENO);
    if (failure == 0)
        failure = posix_spawn_file_actions_adddup2(&actions, answers[WRITE_END], STDOUT_FILENO);
    if (failure == 0)
        failure = posix_spawn(process, own_path(), &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return failure;
}

static int spawn_worker(const bench_network *n, pid_t *process, const int requests[2], const int answers[2]) {
    char text[9][ARGUMENT_BYTES], *arguments[13] = {"division", "bench", "worker"};
    int count = 0;
    snprintf(text[count++], ARGUMENT_BYTES, "--model=%s", n->model);
    snprintf(text[count++], ARGUMENT_BYTES, "--method=%s", n->method);
    snprintf(text[count++], ARGUMENT_BYTES, "--freeze=%s", n->freeze != NULL ? n->freeze : "");
    snprintf(text[count++], ARGUMENT_BYTES, "--tune=%s", n->tune != NULL ? n->tune : "");
    snprintf(text[count++], ARGUMENT_BYTES, "--precision=%s", bench_precisions[n->precision]);
    snprintf(text[count++], ARGUMENT_BYTES, "--batch=%d", n->batch);
    snprintf(text[count++], ARGUMENT_BYTES, "--classes=%d", n->classes);
    snprintf(text[count++], ARGUMENT_BYTES, "--side=%d", n->side);
    snprintf(text[count++], ARGUMENT_BYTES, "--threads=%d", n->threads);
    for (int i = 0; i < count; i++)
        arguments[3 + i] = text[i];
    return spawn(process, arguments, requests, answers);
}

int bench_worker_start(bench_worker *worker, const bench_network *network) {
    int requests[2] = {-1, -1}, answers[2] = {-1, -1}, failure = 0;
    *worker = (bench_worker){.network = network};
    if (!open_pipe(requests) || !open_pipe(answers))
        failure = errno;
    if (failure == 0)
        failure = spawn_worker(network, &worker->process, requests, answers);
    if (failure != 0) {
        close_pipe(requests);
        close_pipe(answers);
        worker->process = 0;
        return cli_fail("could not start a process to measure in: %s: free some memory or processes",
                        strerror(failure));
    }
    close(requests[READ_END]);
    close(answers[WRITE_END]);
    worker->requests = fdopen(requests[WRITE_END], "w");
    worker->answers = fdopen(answers[READ_END], "r");
    if (worker->requests != NULL && worker->answers != NULL)
        return CLI_SUCCESS;
    close_pipe((int[]){worker->requests ? -1 : requests[WRITE_END], worker->answers ? -1 : answers[READ_END]});
    (void)bench_worker_end(worker);
    return cli_fail("no memory to talk to the process that measures: free some");
}

/* ---- ending -------------------------------------------------------------------------------- */

static int explain_end(const bench_network *n, int status) {
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    const char *advice = WTERMSIG(status) == SIGKILL ? "memory may have run out: use a smaller batch" : "this is a bug";
    return cli_fail("%s, batch %d, method %s: the process that trained it was ended by signal %d: %s", n->model,
                    n->batch, n->method, WTERMSIG(status), advice);
}

int bench_worker_end(bench_worker *worker) {
    int status = 0;
    if (worker->process == 0)
        return CLI_SUCCESS;
    if (worker->requests != NULL)
        fclose(worker->requests);
    if (worker->answers != NULL)
        fclose(worker->answers);
    while (waitpid(worker->process, &status, 0) < 0 && errno == EINTR)
        continue;
    worker->process = 0;
    return explain_end(worker->network, status);
}

/* ---- asking -------------------------------------------------------------------------------- */

/* The number behind a key of a line of JSON. Returns 0 if there is none. */
static int number_of(const char *line, const char *key, double *number) {
    const char *at = strstr(line, key);
    char *end = NULL;
    if (at != NULL)
        *number = strtod(at + strlen(key), &end);
    return at != NULL && end != at + strlen(key);
}

static int read_answer(FILE *file, bench_answer *answer) {
    char line[LINE_BYTES];
    double peak;
    if (fgets(line, sizeof line, file) == NULL || !number_of(line, "\"seconds\": ", &answer->seconds) ||
        !number_of(line, "\"peak_bytes\": ", &peak))
        return 0;
    answer->peak_bytes = (size_t)peak;
    return 1;
}

int bench_worker_train(bench_worker *worker, int steps, bench_answer *answer) {
    int asked = fprintf(worker->requests, "%d\n", steps) > 0 && fflush(worker->requests) == 0;
    if (asked && read_answer(worker->answers, answer))
        return CLI_SUCCESS;
    int code = bench_worker_end(worker);
    return code != CLI_SUCCESS ? code : cli_fail("the process that measures ended too early: this is a bug");
}

/* ---- calling ------------------------------------------------------------------------------- */

/* The child: its output goes to the descriptor, and it is told to end when whoever waits for it is gone. */
static _Noreturn void become(char *const *arguments, int out) {
    int in = open("/dev/null", O_RDONLY);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (in >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        (void)execv(own_path(), arguments);
    _exit(CLI_FAILURE);
}

/* The last line of a pipe, without its newline. */
static void read_last_line(int descriptor, char line[BENCH_LINE_BYTES]) {
    char text[BENCH_LINE_BYTES];
    FILE *file = fdopen(descriptor, "r");
    while (file != NULL && fgets(text, sizeof text, file) != NULL)
        snprintf(line, BENCH_LINE_BYTES, "%.*s", (int)strcspn(text, "\n"), text);
    if (file != NULL)
        fclose(file);
}

int bench_call(char *const *arguments, const char *log, char line[BENCH_LINE_BYTES]) {
    int ends[2] = {-1, -1}, status = 0;
    if (log != NULL)
        ends[WRITE_END] = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    else if (!open_pipe(ends))
        ends[WRITE_END] = -1;
    pid_t process = ends[WRITE_END] >= 0 ? fork() : -1;
    if (process == 0)
        become(arguments, ends[WRITE_END]);
    int failure = errno;
    if (ends[WRITE_END] >= 0)
        close(ends[WRITE_END]);
    if (process < 0)
        return cli_fail("could not call division %s: %s: make room and call it again", arguments[1], strerror(failure));
    if (log == NULL)
        read_last_line(ends[READ_END], line);
    while (waitpid(process, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    return cli_fail("division %s was ended by signal %d: call it again to go on", arguments[1], WTERMSIG(status));
}
