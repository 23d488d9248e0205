/* The live line and lines that stay, in pseudo-terminals of several widths: no line is wider than the terminal. Then
 * the program itself: its screen while it trains, and its answer to Ctrl-C. */
#include "check.h"
#include "cli/cli.h"
#include "cli/live.h"

#include <errno.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SCREEN_BYTES = 1 << 16, COLUMNS = 80 };

/* What a terminal was sent. */
typedef struct screen {
    int terminal;
    pid_t child;
    char text[SCREEN_BYTES];
    size_t length;
    size_t widest, column; /* characters in a line so far */
    int escape;            /* inside of a sequence that begins with ESC */
} screen;

static void look_at(screen *s, char character) {
    if (s->escape)
        s->escape = !(character >= '@' && character != '[');
    else if (character == '\033')
        s->escape = 1;
    else if (character == '\r' || character == '\n')
        s->column = 0;
    else if (((unsigned char)character & 0xC0) != 0x80 && ++s->column > s->widest)
        s->widest = s->column;
}

/* Reads some more. Returns 0 at the end. */
static int read_more(screen *s) {
    ssize_t bytes = read(s->terminal, s->text + s->length, sizeof s->text - 1 - s->length);
    for (ssize_t i = 0; i < bytes; i++)
        look_at(s, s->text[s->length + (size_t)i]);
    s->length += bytes > 0 ? (size_t)bytes : 0;
    s->text[s->length] = '\0';
    return bytes > 0;
}

/* Reads until the text is there; fails the test if it does not come. */
static void wait_for(screen *s, const char *text) {
    while (strstr(s->text, text) == NULL)
        if (!read_more(s))
            fail_msg("\"%s\" did not come: %s", text, s->text);
}

/* Begins a child that has a terminal of so many columns. Returns 1 in the child. Where the system has no terminals to
 * give, as in a root without /dev/pts, the test is left out. */
static int begin(screen *s, unsigned short columns) {
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    memset(s, 0, sizeof *s);
    s->child = forkpty(&s->terminal, NULL, NULL, &size);
    if (s->child < 0)
        leave_out("no terminal to be had: %s", strerror(errno));
    return s->child == 0;
}

/* Reads to the end. Returns the child's exit code. */
static int end(screen *s) {
    int status;
    while (read_more(s))
        continue;
    assert_int_equal(waitpid(s->child, &status, 0), s->child);
    close(s->terminal);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void draw(cli_live *line) {
    cli_live_draw(line, "epoch %d/%d  step %d/%d  loss %.4f  top-1 %.2f %%  %d images/s  1:02:03 left  peak %s", 17,
                  100, 1234, 5005, 2.3026, 10.5, 1234, "12.3 GB");
}

/* Draws in a terminal of so many columns, with COLUMNS set to a text unless it is NULL. */
static void draw_in(screen *s, unsigned short columns, const char *environment) {
    if (begin(s, columns)) {
        cli_live line = cli_live_new(stdout, 0);
        if (environment != NULL)
            setenv("COLUMNS", environment, 1);
        draw(&line);
        _exit(0);
    }
    assert_int_equal(end(s), 0);
}

static void fields_are_left_out(void **state) {
    (void)state;
    static const struct {
        unsigned short columns;
        const char *environment, *expected;
    } cases[] = {
        {200, NULL,
         "epoch 17/100  step 1234/5005  loss 2.3026  top-1 10.50 %  1234 images/s  1:02:03 left  peak 12.3 GB"},
        {80, NULL, "epoch 17/100  step 1234/5005  loss 2.3026  top-1 10.50 %  1234 images/s"},
        {72, NULL, "epoch 17/100  step 1234/5005  loss 2.3026  top-1 10.50 %  1234 images/s"},
        {71, NULL, "epoch 17/100  step 1234/5005  loss 2.3026  top-1 10.50 %"},
        {16, NULL, "epoch 17/100"},
        {9, NULL, "epoch 17"},
        {3, NULL, "epoch 1"},
        {0, NULL, "epoch 17/100  step 1234/5005  loss 2.3026  top-1 10.50 %  1234 images/s"},
        {80, "30", "epoch 17/100  step 1234/5005"},
        {30, "80", "epoch 17/100  step 1234/5005"},
        {0, "30", "epoch 17/100  step 1234/5005"},
        {30, "wide", "epoch 17/100  step 1234/5005"},
    };
    static screen s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        draw_in(&s, cases[i].columns, cases[i].environment);
        assert_string_equal(s.text, cases[i].expected);
    }
}

static void a_change_of_size_is_followed(void **state) {
    (void)state;
    static screen s;
    if (begin(&s, 80)) {
        struct winsize size = {.ws_row = 24, .ws_col = 40};
        cli_live line = cli_live_new(stdout, 0);
        draw(&line);
        ioctl(STDOUT_FILENO, TIOCSWINSZ, &size);
        draw(&line);
        _exit(0);
    }
    assert_int_equal(end(&s), 0);
    assert_non_null(strstr(s.text, "images/s\r\033[Kepoch 17/100  step 1234/5005"));
    assert_null(strstr(s.text, "step 1234/5005  loss 2.3026\r"));
}

static void lines_that_stay_are_folded(void **state) {
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"short", "short\r\n"},
        {"epoch 1/2  loss 2.3026  top-1 10.50 %  6 images/s",
         "epoch 1/2  loss 2.3026\r\n  top-1 10.50 %  6 images/s\r\n"},
        {"planned 9.5 MB: parameters 1 MB, gradients 1 MB",
         "planned 9.5 MB:\r\n  parameters 1 MB,\r\n  gradients 1 MB\r\n"},
        {"no field and no comma, but many words in a row", "no field and no comma,\r\n  but many words in a row\r\n"},
        {"run 'division a b' and then c", "run 'division a b' and then c\r\n"},
        {"a word or two 'division train --resume'", "a word or two\r\n  'division train --resume'\r\n"},
        {"of the batch's 12 or of a user's 34", "of the batch's 12 or of a\r\n  user's 34\r\n"},
        {"'division train --resume runs/first'", "'division train --resume\r\n  runs/first'\r\n"},
        {"of all the planned peak 66.2 MB resident", "of all the planned peak\r\n  66.2 MB resident\r\n"},
        {"of all those that were held 12 % or so", "of all those that were held\r\n  12 % or so\r\n"},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijkl", "abcdefghijklmnopqrstuvwxyzabc\r\n  defghijkl\r\n"},
        {"\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303"
         "\244\303\244",
         "\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303"
         "\244\r\n  \303\244\r\n"},
    };
    static screen s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (begin(&s, 30)) {
            cli_live line = cli_live_new(stdout, 0);
            cli_live_print(&line, "%s", cases[i].text);
            _exit(0);
        }
        assert_int_equal(end(&s), 0);
        assert_string_equal(s.text, cases[i].expected);
        assert_true(s.widest < 30);
    }
}

static void messages_are_folded(void **state) {
    (void)state;
    static screen s;
    if (begin(&s, 30)) {
        cli_fail("interrupted after step 6: '%s' goes on", "division train r");
        _exit(0);
    }
    assert_int_equal(end(&s), 0);
    assert_string_equal(s.text, "division: interrupted after\r\n  step 6: 'division train r'\r\n  goes on\r\n");
}

static void help_is_folded(void **state) {
    (void)state;
    static screen s;
    if (begin(&s, 40)) {
        cli_print_hanging(stdout, "  --lr RATE  the rate, as it is at first, before a schedule", 13);
        cli_print_paragraphs("A sentence that is longer than the forty columns of this terminal, and\n"
                             "goes on.\n\nA list:\n  indented words that are folded below theirs\n");
        fflush(stdout);
        _exit(0);
    }
    assert_int_equal(end(&s), 0);
    assert_string_equal(s.text,
                        "  --lr RATE  the rate, as it is at\r\n             first, before a schedule\r\n"
                        "A sentence that is longer than the\r\nforty columns of this terminal, and\r\ngoes on.\r\n\r\n"
                        "A list:\r\n  indented words that are folded below\r\n  theirs\r\n");
    assert_true(s.widest < 40);
}

/* ---- the program --------------------------------------------------------------------------- */

/* A training that would take hours, in a terminal. */
static void begin_training(screen *s) {
    const char *program = getenv("DV_PROGRAM");
    if (program == NULL)
        leave_out("the program: DV_PROGRAM does not name it");
    if (!begin(s, COLUMNS))
        return;
    unsetenv("COLUMNS");
    execl(program, "division", "train", "--model", "resnet20", "--batch", "8", "--data",
          "synthetic:side=8,train=160,test=16", "--epochs", "100000", "--out", "nowhere", (char *)NULL);
    _exit(127);
}

static void the_program_fits_and_answers(void **state) {
    (void)state;
    static screen s;
    begin_training(&s);
    wait_for(&s, "step 1/20  under way");
    wait_for(&s, "epoch 2/100000");
    assert_int_equal(write(s.terminal, "\003", 1), 1);
    assert_int_equal(end(&s), CLI_INTERRUPTED);
    const char *answer = strstr(s.text, "division: stopping after this step; a second Ctrl-C ends at once\r\n");
    assert_non_null(answer);
    assert_non_null(strstr(answer, "division: interrupted after step "));
    assert_in_range(s.widest, 1, COLUMNS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_left_out),
        cmocka_unit_test(a_change_of_size_is_followed),
        cmocka_unit_test(lines_that_stay_are_folded),
        cmocka_unit_test(messages_are_folded),
        cmocka_unit_test(help_is_folded),
        cmocka_unit_test(the_program_fits_and_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
