/* Trains ResNet-18 (its form for small images) with one optimizer, on batches from a file, and writes the weights:
 * what scripts/optimizers holds to PyTorch.
 *
 *     optimizers WEIGHTS BATCHES OPTIMIZER GROUPS CLIP RATE OUT
 *
 * BATCHES has one batch behind the other: images, f32 [BATCH][SIDE][SIDE][3], and labels, int32 [BATCH]. GROUPS may be
 * empty. Only public headers are used. */
#include <division/checkpoint.h>
#include <division/models.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 4, SIDE = 32, CLASSES = 10, ARGUMENTS = 8 };

static void check(dv_status status, const dv_error *error) {
    if (status == DV_OK)
        return;
    fprintf(stderr, "optimizers: %s\n", error->text);
    exit(1);
}

static dv_run *run_new(const char *optimizer, const char *groups, double clip) {
    dv_plan_options options = dv_plan_options_default();
    dv_graph *graph;
    dv_plan *plan;
    dv_run *run;
    dv_error error;
    options.method = "none";
    options.optimizer = optimizer;
    options.groups = groups;
    options.clip = clip;
    options.gradients = clip > 0 ? DV_GRADIENTS_KEPT : DV_GRADIENTS_TRANSIENT;
    check(dv_model_build("resnet18_cifar", DV_F32, BATCH, CLASSES, SIDE, &graph, &error), &error);
    check(dv_plan_new(graph, &options, &plan, &error), &error);
    check(dv_run_new(plan, 1, &run, &error), &error);
    dv_plan_free(plan);
    dv_graph_free(graph);
    return run;
}

static void load(dv_run *run, const char *path) {
    dv_checkpoint *checkpoint;
    dv_error error;
    check(dv_checkpoint_open(path, &checkpoint, &error), &error);
    check(dv_checkpoint_load(checkpoint, &(dv_checkpoint_choice){0}, run, NULL, NULL, &error), &error);
    dv_checkpoint_close(checkpoint);
}

/* False at the end of the file. */
static int fill(dv_run *run, FILE *batches) {
    return fread(dv_run_input(run), dv_map_bytes(dv_run_input_map(run)), 1, batches) == 1 &&
           fread(dv_run_labels(run), sizeof(int32_t), BATCH, batches) == BATCH;
}

static void train(dv_run *run, FILE *batches, double rate) {
    dv_step_result result;
    dv_error error;
    for (uint64_t number = 0; fill(run, batches); number++) {
        check(dv_run_train(run, &(dv_step){.batch = number, .rate = rate, .update = number}, &result, &error), &error);
        if (dv_run_gradients(run) == DV_GRADIENTS_KEPT)
            check(dv_run_update(run, rate, number, &error), &error);
    }
}

int main(int count, char **arguments) {
    dv_error error;
    FILE *batches = count == ARGUMENTS ? fopen(arguments[2], "rb") : NULL;
    if (batches == NULL) {
        fprintf(stderr, "usage: optimizers WEIGHTS BATCHES OPTIMIZER GROUPS CLIP RATE OUT\n");
        return 2;
    }
    dv_run *run = run_new(arguments[3], arguments[4], strtod(arguments[5], NULL));
    load(run, arguments[1]);
    train(run, batches, strtod(arguments[6], NULL));
    check(dv_checkpoint_write(arguments[7], &(dv_checkpoint_content){.run = run}, &error), &error);
    fclose(batches);
    dv_run_free(run);
    return 0;
}
