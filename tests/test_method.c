/* Methods from text: what is the codec's and what is not, and what is wrong with a text. */
#include "check.h"
#include "graph/method.h"

static void check_method(const char *text, const char *codec, const char *source, bool recompute) {
    dv_method method;
    char made[100];
    assert_ok(dv_method_parse(text, &method, &error));
    dv_codec_format(&method.codec, made, sizeof made);
    assert_string_equal(made, codec);
    dv_codec_format(&method.source, made, sizeof made);
    assert_string_equal(made, source);
    assert_int_equal(method.recompute_norms, recompute);
}

static void reads_options(void **state) {
    (void)state;
    const char *plain = "division:block=8,bits=2,dither=stochastic",
               *twice = "division:block=8,bits=4,dither=stochastic";
    check_method("division", plain, twice, false);
    check_method("division:recompute=nothing", plain, twice, false);
    check_method("division:recompute=norms", plain, twice, true);
    check_method("division:recompute=norms,bits=2", plain, twice, true);
    check_method("division:block=8,recompute=norms,bits=2", plain, twice, true);
    check_method("division:bits=2,recompute=norms", plain, twice, true);
    check_method("division:recompute=norms,recompute=nothing", plain, twice, false);
    check_method("division:dither=subtractive,recompute=norms,bits=1", "division:block=8,bits=1,dither=subtractive",
                 "division:block=8,bits=2,dither=subtractive", true);
    check_method("division:bits=8", "division:block=8,bits=8,dither=stochastic",
                 "division:block=8,bits=8,dither=stochastic", false);
}

static void tells_what_is_wrong(void **state) {
    (void)state;
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"", "unknown method \"\": there are none, division"},
        {"divisio", "unknown method \"divisio\""},
        {"none:bits=2", "method none takes no options: drop \":bits=2\""},
        {"division:", "division: no option after a colon or comma"},
        {"division:,", "division: no option after a colon or comma"},
        {"division:recompute=norms,", "division: no option after a colon or comma"},
        {"division:bits=2,,recompute=norms", "division: no option after a colon or comma"},
        {"division:recompute", "division: recompute=: must be nothing or norms"},
        {"division:recompute=", "division: recompute=: must be nothing or norms"},
        {"division:recompute=norm", "division: recompute=norm: must be nothing or norms"},
        {"division:recompute=norms=", "division: recompute=norms=: must be nothing or norms"},
        {"division:recomputed=norms",
         "division: unknown option \"recomputed\": there are block, bits, dither, recompute"},
        {"division:bits=3,recompute=norms", "division: bits=3: must be 1, 2, 4 or 8"},
    };
    dv_method method;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_fails(dv_method_parse(cases[i].text, &method, &error), DV_ERROR_OPTION, cases[i].told);
}

static void long_texts(void **state) {
    (void)state;
    char text[300] = "division:";
    dv_method method;
    while (strlen(text) + strlen("block=8,") < 199)
        strcat(text, "block=8,");
    strcat(text, "bits=2");
    assert_int_equal(strlen(text), 199);
    assert_ok(dv_method_parse(text, &method, &error));
    strcat(text, ",");
    assert_fails(dv_method_parse(text, &method, &error), DV_ERROR_OPTION, "more than 199 characters");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_options),
        cmocka_unit_test(tells_what_is_wrong),
        cmocka_unit_test(long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
