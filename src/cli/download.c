/* Downloads through libcurl, which is opened for it; where the program was built without it, says so. */
#include "download.h"

#include "cli.h"
#include "late.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#ifdef DV_CURL

/* Checks of types that call functions by name would link them. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

static struct {
    __typeof__(curl_global_init) *global_init;
    __typeof__(curl_global_cleanup) *global_cleanup;
    __typeof__(curl_easy_init) *init;
    __typeof__(curl_easy_cleanup) *cleanup;
    __typeof__(curl_easy_setopt) *set;
    __typeof__(curl_easy_getinfo) *get;
    __typeof__(curl_easy_perform) *perform;
    __typeof__(curl_easy_strerror) *text;
} curl;

static const late_function functions[] = {
    {"curl_global_init", &curl.global_init}, {"curl_global_cleanup", &curl.global_cleanup},
    {"curl_easy_init", &curl.init},          {"curl_easy_cleanup", &curl.cleanup},
    {"curl_easy_setopt", &curl.set},         {"curl_easy_getinfo", &curl.get},
    {"curl_easy_perform", &curl.perform},    {"curl_easy_strerror", &curl.text},
};

enum { STALLED_SECONDS = 60, CONNECT_SECONDS = 30, MOST_REDIRECTIONS = 20 };

/* Answers of a server that mean something to us. */
enum { REQUEST_WRONG = 400, REQUEST_TIMEOUT = 408, NOTHING_LEFT = 416, TOO_MANY_REQUESTS = 429, SERVER_TROUBLE = 500 };

typedef struct transfer {
    CURL *handle;
    const char *url, *path;
    FILE *stream;
    curl_off_t before; /* bytes that were there */
    cli_live *line;
    char message[CURL_ERROR_SIZE];
} transfer;

static int show(void *context, curl_off_t total, curl_off_t now, curl_off_t unused_1, curl_off_t unused_2) {
    const transfer *t = context;
    curl_off_t speed = 0;
    char done[CLI_BYTES_TEXT], all[CLI_BYTES_TEXT], rate[CLI_BYTES_TEXT], left[CLI_LEFT_TEXT];
    (void)unused_1;
    (void)unused_2;
    if (total <= 0 || !cli_live_due(t->line))
        return 0;
    curl.get(t->handle, CURLINFO_SPEED_DOWNLOAD_T, &speed);
    cli_live_draw(t->line, "%s of %s  %s/s%s", cli_bytes_text((double)(t->before + now), done),
                  cli_bytes_text((double)(t->before + total), all), cli_bytes_text((double)speed, rate),
                  cli_left_text(speed > 0 ? (double)(total - now) / (double)speed : NAN, left));
    return 0;
}

static void set_options(transfer *t) {
    curl.set(t->handle, CURLOPT_URL, t->url);
    curl.set(t->handle, CURLOPT_WRITEDATA, t->stream);
    curl.set(t->handle, CURLOPT_ERRORBUFFER, t->message);
    curl.set(t->handle, CURLOPT_FAILONERROR, 1L);
    curl.set(t->handle, CURLOPT_FOLLOWLOCATION, 1L);
    curl.set(t->handle, CURLOPT_MAXREDIRS, (long)MOST_REDIRECTIONS);
    curl.set(t->handle, CURLOPT_NOSIGNAL, 1L);
    curl.set(t->handle, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl.set(t->handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl.set(t->handle, CURLOPT_LOW_SPEED_TIME, (long)STALLED_SECONDS);
    curl.set(t->handle, CURLOPT_NOPROGRESS, 0L);
    curl.set(t->handle, CURLOPT_XFERINFOFUNCTION, show);
    curl.set(t->handle, CURLOPT_XFERINFODATA, t);
    curl.set(t->handle, CURLOPT_RESUME_FROM_LARGE, t->before);
}

/* One attempt, behind what is there or, with mode "wb", from the beginning. */
static CURLcode attempt(transfer *t, const char *mode, long *answer, int *write_error) {
    t->stream = fopen(t->path, mode);
    *answer = 0;
    *write_error = t->stream == NULL ? errno : 0;
    if (t->stream == NULL)
        return CURLE_WRITE_ERROR;
    long before = fseek(t->stream, 0, SEEK_END) == 0 ? ftell(t->stream) : 0;
    t->before = before > 0 ? (curl_off_t)before : 0;
    set_options(t);
    errno = 0;
    CURLcode code = curl.perform(t->handle);
    if (code == CURLE_WRITE_ERROR)
        *write_error = errno;
    curl.get(t->handle, CURLINFO_RESPONSE_CODE, answer);
    if (fclose(t->stream) != 0 && code == CURLE_OK) {
        *write_error = errno;
        code = CURLE_WRITE_ERROR;
    }
    return code;
}

/* What to do about a failure. Calling again is told only where it can help. */
static const char *advice(CURLcode code, long answer) {
    static const char address[] = "check the address, or give another with --url",
                      certificates[] = "install the system's certificates (ca-certificates), and check its clock",
                      again[] = "call it again: it goes on";
    static const struct {
        CURLcode code;
        const char *text;
    } known[] = {
        {CURLE_UNSUPPORTED_PROTOCOL, address},
        {CURLE_URL_MALFORMAT, address},
        {CURLE_TOO_MANY_REDIRECTS, address},
        {CURLE_REMOTE_ACCESS_DENIED, address},
        {CURLE_REMOTE_FILE_NOT_FOUND, address},
        {CURLE_FILE_COULDNT_READ_FILE, address},
        {CURLE_COULDNT_RESOLVE_HOST, "check the network and the address, then call it again: it goes on"},
        {CURLE_PEER_FAILED_VERIFICATION, certificates},
        {CURLE_SSL_CACERT_BADFILE, certificates},
        {CURLE_SSL_ISSUER_ERROR, certificates},
    };
    if (code == CURLE_HTTP_RETURNED_ERROR)
        return answer >= REQUEST_WRONG && answer < SERVER_TROUBLE && answer != REQUEST_TIMEOUT &&
                       answer != TOO_MANY_REQUESTS
                   ? address
                   : again;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return known[i].text;
    return again;
}

static dv_status transfer_all(transfer *t, dv_error *error) {
    long answer;
    int write_error;
    CURLcode code = attempt(t, "ab", &answer, &write_error);
    if (code == CURLE_HTTP_RETURNED_ERROR && answer == NOTHING_LEFT && t->before > 0)
        return DV_OK;                                                   /* it was all there */
    if (code == CURLE_RANGE_ERROR || code == CURLE_BAD_DOWNLOAD_RESUME) /* a server that can't go on */
        code = attempt(t, "wb", &answer, &write_error);
    if (code == CURLE_OK)
        return DV_OK;
    if (code == CURLE_WRITE_ERROR)
        return cli_error(error, DV_ERROR_IO, "could not write %.120s: %s: make room, or choose another place", t->path,
                         write_error != 0 ? strerror(write_error) : "it failed");
    return cli_error(error, DV_ERROR_IO, "could not download %.90s: %.70s: %s", t->url,
                     t->message[0] != '\0' ? t->message : curl.text(code), advice(code, answer));
}

dv_status download(const char *url, const char *path, cli_live *line, dv_error *error) {
    transfer t = {.url = url, .path = path, .line = line};
    dv_status status = late_open(DV_CURL, functions, sizeof functions / sizeof *functions, error);
    if (status != DV_OK)
        return status;
    curl.global_init(CURL_GLOBAL_DEFAULT);
    t.handle = curl.init();
    status = t.handle != NULL ? transfer_all(&t, error) : cli_error(error, DV_ERROR_MEMORY, "no memory for a download");
    curl.cleanup(t.handle);
    curl.global_cleanup();
    cli_live_wipe(line);
    return status;
}

#else

dv_status download(const char *url, const char *path, cli_live *line, dv_error *error) {
    (void)line;
    return cli_error(error, DV_ERROR_UNSUPPORTED,
                     "this program was built without libcurl: download %.100s to %.80s by hand", url, path);
}

#endif
