/* The exponential moving average of the weights. Running statistics are averaged with them: they belong to the weights
 * of their time. */
#include <division/train.h>

/* Below this it is not worth waking the threads. */
enum { PARALLEL_FROM = 1 << 15 };

static void move(float part, size_t count, const float *restrict data, float *restrict average) {
#pragma omp parallel for simd if (count >= PARALLEL_FROM) schedule(static)
    for (size_t i = 0; i < count; i++)
        average[i] += part * (data[i] - average[i]);
}

static void exchange(size_t count, float *restrict data, float *restrict average) {
#pragma omp parallel for simd if (count >= PARALLEL_FROM) schedule(static)
    for (size_t i = 0; i < count; i++) {
        float kept = data[i];
        data[i] = average[i];
        average[i] = kept;
    }
}

void dv_average_begin(dv_run *run) {
    const dv_run_parameter *parameter;
    for (size_t i = 0; (parameter = dv_run_parameter_at(run, i)) != NULL; i++)
        for (size_t k = 0; parameter->average != NULL && k < parameter->count; k++)
            parameter->average[k] = parameter->data[k];
}

void dv_average_step(double decay, uint64_t step, dv_run *run) {
    const dv_run_parameter *parameter;
    double early = (1 + (double)step) / (10 + (double)step), part = 1 - (early < decay ? early : decay);
    for (size_t i = 0; (parameter = dv_run_parameter_at(run, i)) != NULL; i++)
        if (parameter->average != NULL)
            move((float)part, parameter->count, parameter->data, parameter->average);
}

void dv_average_exchange(dv_run *run) {
    const dv_run_parameter *parameter;
    for (size_t i = 0; (parameter = dv_run_parameter_at(run, i)) != NULL; i++)
        if (parameter->average != NULL)
            exchange(parameter->count, parameter->data, parameter->average);
}
