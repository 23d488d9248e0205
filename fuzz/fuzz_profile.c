/* Fuzzes the reader of profiles: of what it accepts, all numbers are finite and none is below zero. */
#include "budget/profile.h"
#include "require.h"

#include <division/models.h>

#include <math.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dv_graph *network(void) {
    static dv_graph *graph;
    dv_error error;
    if (!graph)
        REQUIRE(dv_model_build("resnet20", DV_F32, 2, 0, 8, &graph, &error) == DV_OK);
    return graph;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dv_profile *profile;
    dv_error error;
    if (dv_profile_parse("input", (const char *)data, size, network(), &profile, &error) != DV_OK)
        return 0;
    for (size_t i = 0; i < profile->value_count; i++)
        for (int kind = 0; kind < DV_NOISE_KINDS; kind++)
            REQUIRE(profile->noise[i].direct[kind] >= 0 && isfinite(profile->noise[i].direct[kind]) &&
                    isfinite(profile->noise[i].through[kind]));
    dv_profile_free(profile);
    return 0;
}
