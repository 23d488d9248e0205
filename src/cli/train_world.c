/* Several processes that train together: `mpirun -n 4 division train ...`. */
#include "cli.h"
#include "train.h"

#include <division/parallel.h>

int train_open_world(train_settings *settings) {
    dv_options *options = &settings->options;
    dv_error error;
    if (!dv_world_launched())
        return CLI_CONTINUE;
    if (dv_world_open(options->timeout, &options->world, &error) != DV_OK)
        return cli_report(&error);
    if (settings->find_rate && dv_world_ranks(options->world) > 1)
        return cli_wrong_call("--find-lr: rates are tried by one process: call it without the launcher");
    settings->quiet = settings->quiet || dv_world_rank(options->world) > 0;
    return CLI_CONTINUE;
}

void train_leave_world(const train_settings *settings, int code) {
    dv_world *world = settings->options.world;
    if (code == CLI_SUCCESS)
        dv_world_close(world);
    else
        dv_world_abort(world, code);
}

int train_report(const train_settings *settings, const dv_error *error) {
    const dv_world *world = settings->options.world;
    size_t rank = dv_world_rank(world);
    if (dv_world_ranks(world) == 1 || (dv_world_agreed(world) && rank == 0))
        return cli_report(error);
    if (!dv_world_agreed(world))
        (void)cli_fail("rank %zu: %s", rank, error->text);
    return error->status == DV_ERROR_OPTION ? CLI_WRONG_CALL : CLI_FAILURE;
}
