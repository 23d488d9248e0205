/* Says what is on images, by the weights of a training: predict runs/first cat.jpg dog.png */
#include <division/division.h>

#include <stdio.h>

int main(int argc, char **argv) {
    dv_predictor *predictor = NULL;
    dv_error error;
    size_t label;
    dv_status status = dv_predictor_open(argc > 1 ? argv[1] : NULL, NULL, &predictor, &error);
    for (int i = 2; i < argc && status == DV_OK; i++) {
        if ((status = dv_predictor_read(predictor, 0, argv[i], &error)) != DV_OK ||
            (status = dv_predictor_predict(predictor, 1, &error)) != DV_OK)
            break;
        const float *logits = dv_predictor_logits(predictor, 0);
        dv_top_labels(logits, dv_predictor_describe(predictor).classes, &label, 1);
        printf("%s: %s, %.1f %%\n", argv[i], dv_predictor_class_name(predictor, label),
               100 * (double)dv_predictor_probabilities(predictor, 0)[label]);
    }
    if (status != DV_OK)
        fprintf(stderr, "predict: %s\n", error.text);
    dv_predictor_close(predictor);
    return status != DV_OK;
}
