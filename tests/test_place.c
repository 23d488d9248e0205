/* Placing: nothing that lives at one moment overlaps, and little is wasted. */
#include "base/random.h"
#include "check.h"
#include "graph/place.h"

enum { PIECES = 400, MOMENTS = 100 };

static void random_pieces(dv_piece *pieces, uint64_t seed) {
    dv_random key = dv_random_key(&seed, 1);
    for (uint32_t i = 0; i < PIECES; i++) {
        uint32_t a = dv_random_word(key, 3 * i) % MOMENTS, b = dv_random_word(key, 3 * i + 1) % 12;
        pieces[i] = (dv_piece){.bytes = 1 + dv_random_word(key, 3 * i + 2) % 100000, .first = (int)a};
        pieces[i].last = (int)(a + b < MOMENTS ? a + b : MOMENTS - 1);
    }
}

/* The most that is alive at one moment: no arena can be smaller. */
static size_t lower_bound(const dv_piece *pieces) {
    size_t most = 0;
    for (int moment = 0; moment < MOMENTS; moment++) {
        size_t alive = 0;
        for (size_t i = 0; i < PIECES; i++)
            alive += pieces[i].first <= moment && moment <= pieces[i].last ? dv_place_aligned(pieces[i].bytes) : 0;
        most = alive > most ? alive : most;
    }
    return most;
}

static void nothing_overlaps_and_little_is_wasted(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        static dv_piece pieces[PIECES];
        size_t arena;
        random_pieces(pieces, seed);
        assert_true(dv_place(pieces, PIECES, 0, &arena));
        for (size_t i = 0; i < PIECES; i++) {
            assert_int_equal(pieces[i].offset % DV_PLACE_ALIGNMENT, 0);
            assert_true(pieces[i].offset + pieces[i].bytes <= arena);
            for (size_t j = 0; j < i; j++) {
                int together = pieces[i].first <= pieces[j].last && pieces[j].first <= pieces[i].last;
                int apart = pieces[i].offset + pieces[i].bytes <= pieces[j].offset ||
                            pieces[j].offset + pieces[j].bytes <= pieces[i].offset;
                assert_true(!together || apart);
            }
        }
        assert_true(arena >= lower_bound(pieces));
        if ((double)arena > 1.1 * (double)lower_bound(pieces))
            fail_msg("seed %d: %zu bytes, lower bound %zu", (int)seed, arena, lower_bound(pieces));
    }
}

/* What lies between two pieces that live at one moment, or before them. Each has its own zone on that side. */
static void zones_stay_free(void **state) {
    (void)state;
    enum { ZONE = 128 };
    static dv_piece pieces[PIECES];
    size_t shared, apart;
    random_pieces(pieces, 1);
    assert_true(dv_place(pieces, PIECES, ZONE, &shared));
    for (size_t i = 0; i < PIECES; i++) {
        assert_true(pieces[i].offset >= ZONE && pieces[i].offset + pieces[i].bytes + ZONE <= shared);
        for (size_t j = 0; j < PIECES; j++)
            if (i != j && pieces[i].first <= pieces[j].last && pieces[j].first <= pieces[i].last)
                assert_true(pieces[j].offset > pieces[i].offset
                                ? pieces[j].offset - pieces[i].offset >= pieces[i].bytes + 2 * ZONE
                                : pieces[i].offset - pieces[j].offset >= pieces[j].bytes + 2 * ZONE);
    }
    dv_place_apart(pieces, PIECES, ZONE, &apart);
    for (size_t i = 1; i < PIECES; i++)
        assert_true(pieces[i].offset - pieces[i - 1].offset >= pieces[i - 1].bytes + 2 * ZONE);
    assert_true(apart > shared && pieces[PIECES - 1].offset + pieces[PIECES - 1].bytes + ZONE <= apart);
}

static void no_pieces_take_no_memory(void **state) {
    (void)state;
    size_t arena = 1;
    assert_true(dv_place(NULL, 0, 0, &arena));
    assert_int_equal(arena, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_overlaps_and_little_is_wasted),
        cmocka_unit_test(zones_stay_free),
        cmocka_unit_test(no_pieces_take_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
