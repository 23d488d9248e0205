/* Fuzzes what reports are made of: lines of benchmarks and plans, and, where the first byte says so, the options and
 * the log of a run, parted by the first newline. Of what is accepted a page is made, with every figure and table; a
 * coordinate that is no number would be a dash in it. */
#include "report/page.h"
#include "report/tensorboard.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dv_status read_run(dv_report_data *report, const char *text, size_t bytes, dv_error *error) {
    const char *newline = bytes > 0 ? memchr(text, '\n', bytes) : NULL;
    size_t first = newline != NULL ? (size_t)(newline - text) : bytes, rest = newline != NULL ? first + 1 : bytes;
    dv_record_text config = {"config.json", text, first}, log = {"log.jsonl", text + rest, bytes - rest};
    return dv_report_read_run(report, "run", &config, &log, 1e9, error);
}

static void write_all(dv_report_data *report) {
    dv_text page = {0}, events = {0};
    dv_page_write(report, "title", &page);
    for (size_t i = 0; i < report->run_count; i++)
        dv_tensorboard_write(&report->runs[i], &events);
    if (strstr(page.data, "=\"\xe2\x80\x93") != NULL)
        abort();
    dv_text_free(&page);
    dv_text_free(&events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dv_report_data report = {0};
    dv_error error;
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    dv_record_text lines = {"lines.jsonl", text, size - 1};
    dv_status status =
        data[0] == 'r' ? read_run(&report, text, size - 1, &error) : dv_report_read_lines(&report, &lines, &error);
    if (status == DV_OK && dv_report_group(&report, &error) == DV_OK)
        write_all(&report);
    dv_report_data_free(&report);
    return 0;
}
