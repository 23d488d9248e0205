/* Characters of UTF-8: their lengths and numbers, how many a text has, and a text cut to so many. */
#include "base/printable.h"
#include "check.h"

#include <division/tools/text.h>

static const struct {
    const char *text;
    size_t length;
    uint32_t code;
} characters[] = {
    {"a", 1, 'a'},
    {"\xc3\x9f", 2, 0xdf},
    {"\xe2\x82\xac", 3, 0x20ac},
    {"\xf0\x9f\x98\x80", 4, 0x1f600},
    {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
    {"\xf4\x90\x80\x80", 0, 0xfffd}, /* above all of them */
    {"\xc0\xaf", 0, 0xfffd},         /* overlong */
    {"\xed\xa0\x80", 0, 0xfffd},     /* a surrogate */
    {"\xe2\x82", 0, 0xfffd},         /* cut */
    {"\x80", 0, 0xfffd},
    {"\xff", 0, 0xfffd},
};

static void lengths_and_numbers(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof characters / sizeof *characters; i++) {
        assert_int_equal(dv_utf8_length(characters[i].text), characters[i].length);
        assert_int_equal(dv_utf8_step(characters[i].text), characters[i].length > 0 ? characters[i].length : 1);
        assert_int_equal(dv_utf8_code(characters[i].text), characters[i].code);
    }
}

static void characters_are_counted(void **state) {
    (void)state;
    assert_int_equal(dv_text_characters(""), 0);
    assert_int_equal(dv_text_characters("plain"), 5);
    assert_int_equal(dv_text_characters("Stra\xc3\x9f"
                                        "e"),
                     6);
    assert_int_equal(dv_text_characters("\xff\xe2\x82"), 3); /* bytes that are none */
}

static void texts_are_cut(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t most;
        const char *expected;
    } cases[] = {
        {"plain", 5, "plain"},
        {"plain", 9, "plain"},
        {"plain", 4, "pl.."},
        {"plain", 2, ".."},
        {"Stra\xc3\x9f"
         "e",
         6,
         "Stra\xc3\x9f"
         "e"},
        {"\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", 3, "\xc3\xa4.."},
        {"", 2, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = guarded_new(strlen(cases[i].text) + 1);
        strcpy(text, cases[i].text);
        assert_ptr_equal(dv_text_cut(text, cases[i].most), text);
        assert_string_equal(text, cases[i].expected);
        guarded_free(text, strlen(cases[i].text) + 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_and_numbers),
        cmocka_unit_test(characters_are_counted),
        cmocka_unit_test(texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
