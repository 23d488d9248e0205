/* Methods from text: what is the codec's and what is not, and what is wrong with a text. */
#include "check.h"
#include "graph/method.h"

static void check_method(const char *text, const char *codec, int recompute) {
    dv_method method;
    char made[100];
    assert_ok(dv_method_parse(text, &method, &error));
    dv_codec_format(&method.codec, made, sizeof made);
    assert_string_equal(made, codec);
    assert_int_equal(method.options[0], recompute);
}

static void reads_options(void **state) {
    (void)state;
    const char *plain = "division:block=8,bits=2,dither=stochastic,lfc=on,hfc=on";
    check_method("division", plain, 0);
    check_method("division:recompute=nothing", plain, 0);
    check_method("division:recompute=norms", plain, 1);
    check_method("division:recompute=norms,bits=2", plain, 1);
    check_method("division:block=8,recompute=norms,bits=2", plain, 1);
    check_method("division:bits=2,recompute=norms", plain, 1);
    check_method("division:recompute=norms,recompute=nothing", plain, 0);
    check_method("division:dither=subtractive,recompute=norms,bits=1",
                 "division:block=8,bits=1,dither=subtractive,lfc=on,hfc=on", 1);
    check_method("division:bits=8", "division:block=8,bits=8,dither=stochastic,lfc=on,hfc=on", 0);
}

static void tells_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"", "unknown method \"\": there are none, division, checkpoint, swap, bf16, blpa, actnn, acgc"},
        {"divisio", "unknown method \"divisio\""},
        {"none:bits=2", "none: unknown option \"bits\": it takes none"},
        {"division:", "division: no option after a colon or comma"},
        {"division:,", "division: no option after a colon or comma"},
        {"division:recompute=norms,", "division: no option after a colon or comma"},
        {"division:bits=2,,recompute=norms", "division: no option after a colon or comma"},
        {"division:recompute", "division: recompute=: must be nothing or norms"},
        {"division:recompute=", "division: recompute=: must be nothing or norms"},
        {"division:recompute=norm", "division: recompute=norm: must be nothing or norms"},
        {"division:recompute=norms=", "division: recompute=norms=: must be nothing or norms"},
        {"division:recomputed=norms",
         "division: unknown option \"recomputed\": there are block, bits, dither, lfc, hfc, recompute, spill"},
        {"division:hfc=off,recompute=norms,lfc=off", "division: lfc=off and hfc=off leave nothing of a map"},
        {"division:bits=3,recompute=norms", "division: bits=3: must be 1, 2, 4 or 8"},
        {"checkpoint:segments=-1", "checkpoint: segments=-1: must be a whole number from 0 to 1000000"},
        {"swap:tmpfs=yes", "swap: tmpfs=yes: must be refused or allowed"},
        {"actnn:level=L5", "actnn: level=L5: must be L0, L1, L2, L3 or L4"},
        {"actnn:bits=9", "actnn: bits=9: must be a whole number from 1 to 8"},
        {"blpa:bits=2", "blpa: bits=2: must be 4 or 8"},
        {"checkpoint:bits=2", "checkpoint: unknown option \"bits\": there are segments"},
    };
    dv_method method;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(dv_method_parse(cases[i].text, &method, &error), DV_ERROR_OPTION, cases[i].told);
}

/* A network without parameters has no backward: nothing is kept, cut or spilled. */
static void takes_a_network_without_parameters(void **state) {
    (void)state;
    const dv_pooling_options half = {.window = dv_window_square(2, 2, 0)};
    for (size_t i = 0; dv_method_name_at(i); i++) {
        dv_plan_options options = dv_plan_options_default();
        dv_graph *graph;
        dv_plan *plan;
        options.method = dv_method_name_at(i);
        assert_ok(dv_graph_new(DV_F32, 2, &graph, &error));
        dv_value x = dv_graph_input(graph, 3, 2, (const size_t[]){4, 4});
        x = dv_graph_relu(graph, "relu", dv_graph_average_pooling(graph, "pool", x, &half));
        assert_ok(dv_graph_finish(graph, x, &error));
        assert_ok(dv_plan_new(graph, &options, &plan, &error));
        assert_int_equal(dv_plan_totals(plan).activations, 0);
        dv_plan_free(plan);
        dv_graph_free(graph);
    }
}

/* What can be asked for is what a text may say: every option at its preset and, if it has bounds, not beyond them. */
static void options_can_be_asked_for(void **state) {
    (void)state;
    dv_method method;
    const dv_option *option;
    char text[200];
    size_t options = 0;
    for (size_t m = 0; dv_method_name_at(m); m++)
        for (size_t i = 0; (option = dv_method_option_at(m, i)); i++, options++) {
            snprintf(text, sizeof text, "%s:%s=%s", dv_method_name_at(m), option->name, option->preset);
            assert_ok(dv_method_parse(text, &method, &error));
            snprintf(text, sizeof text, "%s:%s=%.0f", dv_method_name_at(m), option->name, option->maximum + 1);
            assert_fails(dv_method_parse(text, &method, &error), DV_ERROR_OPTION, option->name);
        }
    assert_true(options >= 12);
    assert_null(dv_method_option_at(0, 0));
    assert_null(dv_method_option_at(1000, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_options),
        cmocka_unit_test(tells_what_is_wrong),
        cmocka_unit_test(options_can_be_asked_for),
        cmocka_unit_test(takes_a_network_without_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
