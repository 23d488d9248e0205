/* Trains ResNet-20 on made-up images, into a folder from which it goes on.
 *
 *     OMP_WAIT_POLICY=passive train FOLDER [OPTION=VALUE...]        train runs/first epochs=3 batch=64 lr=0.05
 *
 * Ctrl-C ends it after the step. The same call again goes on from the last checkpoint, to the same bits; so it does
 * after a crash. Options are those of `division train`, and the folder is one that `division eval` and `division
 * report` read. */
#include <division/division.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t stop;

static void ask_to_stop(int number) {
    (void)number;
    stop = 1;
}

static void show(void *context, const dv_epoch_record *record) {
    (void)context;
    printf("epoch %zu  loss %.4f  test top-1 %.2f %%\n", record->epoch, record->train_loss, record->test_top1);
    fflush(stdout);
}

/* Sets what "lr=0.05" says. */
static dv_status set(dv_options *options, char *text, dv_error *error) {
    char *equals = strchr(text, '=');
    if (equals != NULL)
        *equals = '\0';
    return dv_options_set(options, text, equals != NULL ? equals + 1 : NULL, error);
}

static dv_status train(const dv_options *options, const char *folder, dv_error *error) {
    const dv_training_callbacks callbacks = {.epoch = show, .stop = &stop};
    dv_training *training;
    dv_status status = dv_training_new(options, folder, DV_FOLDER_GO_ON, &callbacks, &training, error);
    if (status != DV_OK)
        return status;
    const dv_train_state *state = dv_training_state(training);
    printf("%zu bytes planned; begins after step %llu\n", dv_plan_totals(dv_training_plan(training)).planned,
           (unsigned long long)state->step);
    status = dv_training_train(training, NULL, error);
    printf("ends after step %llu\n", (unsigned long long)state->step);
    dv_training_free(training);
    return status;
}

int main(int argc, char **argv) {
    dv_options options = dv_options_default(); /* ResNet-20, synthetic images, the method `division` */
    dv_error error = {.text = "usage: train FOLDER [OPTION=VALUE...]"};
    dv_status status = argc > 1 ? DV_OK : DV_ERROR_OPTION;
    signal(SIGINT, ask_to_stop);
    for (int i = 2; i < argc && status == DV_OK; i++)
        status = set(&options, argv[i], &error);
    if (status == DV_OK)
        status = train(&options, argv[1], &error);
    if (status != DV_OK)
        fprintf(stderr, "train: %s\n", error.text);
    return status != DV_OK;
}
