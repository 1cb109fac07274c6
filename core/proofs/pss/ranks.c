/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * pss: when levels are given, each queue becomes the holder of its ranks, which follow the levels; and after a change of any queue the
 * set has the present ranks of the queues that can send and the row of low queues names each of them once. order.c begins with that.
 * Taken as given: pss_check has accepted the settings, so they have at most LW_BITMAP_SIZE levels; a plain queue is at its high level.
 */
#include "order.h"
#include "../sort.h"

/*@ axiomatic levels_of_queues {
      axiom no_levels{L}: \forall struct pss_setting *settings; pss_nlevels{L}(settings, 0) == 0;
      axiom one_level{L}: \forall struct pss_setting *settings, integer q; 0 <= q && \at(settings[q].value[PSS_LOW_LEVEL], L) == LW_UNSET ==>
	pss_nlevels{L}(settings, q + 1) == pss_nlevels{L}(settings, q) + 1;
      axiom two_levels{L}: \forall struct pss_setting *settings, integer q; 0 <= q && \at(settings[q].value[PSS_LOW_LEVEL], L) != LW_UNSET ==>
	pss_nlevels{L}(settings, q + 1) == pss_nlevels{L}(settings, q) + 2;
      axiom parts: \forall integer level, low, q; 0 <= level && 0 <= low < 2 && 0 <= q < LW_BITMAP_SIZE ==>
	pss_sort_key(level, low, q) % LW_BITMAP_SIZE == q && pss_sort_key(level, low, q) / LW_BITMAP_SIZE % 2 == low;
      axiom more_urgent: \forall integer level, low, q, than, flow, p; 0 <= level < than && 0 <= low < 2 && 0 <= flow < 2 &&
	0 <= q < LW_BITMAP_SIZE && 0 <= p < LW_BITMAP_SIZE ==> pss_sort_key(level, low, q) < pss_sort_key(than, flow, p);
    }
    predicate pss_found{L}(struct pss_setting *settings, uint32_t *key, integer n) = \forall integer q, low;
	0 <= q < lw_n && pss_has{L}(settings, q, low) ==> \exists integer i; 0 <= i < n && \at(key[i], L) == pss_key_of{L}(settings, q, low); */

/*@ assigns \nothing;
    ensures n == lw_n ==> \result == pss_setting_row(st); */
static struct pss_setting *pss_settings(struct pss_state *st, uint32_t n);

/*@ requires range: low <= 1 && q < LW_BITMAP_SIZE;
    assigns \nothing;
    ensures key: \result == pss_sort_key(lw_level_of(level, q), low, q);
    ensures queue: \result % LW_BITMAP_SIZE == q;
    ensures low: \result / LW_BITMAP_SIZE % 2 == low; */
static uint32_t pss_key(uint64_t level, uint32_t low, uint32_t q);

/*@ requires room: nqueues == lw_n && lw_n <= LW_BITMAP_SIZE && \valid(key + (0 .. 2 * lw_n - 1)) && \valid_read(settings + (0 .. lw_n - 1));
    requires apart: \separated(key + (0 .. 2 * lw_n - 1), settings + (0 .. lw_n - 1));
    requires good: \forall integer k; lw_good(k) <==> pss_is_key((struct pss_setting *)settings, k, lw_n);
    assigns key[0 .. 2 * lw_n - 1];
    ensures most: \result <= 2 * lw_n && \result == pss_nlevels((struct pss_setting *)settings, lw_n);
    ensures keyed: pss_keyed((struct pss_setting *)settings, key, \result, lw_n);
    ensures found: pss_found((struct pss_setting *)settings, key, \result);
    ensures ascending: lw_ascending(key, 0, \result); */
static uint32_t pss_keys(const struct pss_setting *settings, uint32_t nqueues, uint32_t *key);

/*@ requires room: lw_n <= LW_BITMAP_SIZE && n <= 2 * lw_n && n <= LW_BITMAP_SIZE && \valid(holders + (0 .. 2 * lw_n - 1)) &&
	\valid(pss_rows(st) + (0 .. lw_n - 1)) && \valid_read(pss_setting_row(st) + (0 .. lw_n - 1));
    requires apart: \separated(holders + (0 .. 2 * lw_n - 1), pss_rows(st) + (0 .. lw_n - 1), pss_setting_row(st) + (0 .. lw_n - 1));
    requires keyed: pss_keyed(pss_setting_row(st), holders, n, lw_n);
    requires found: pss_found(pss_setting_row(st), holders, n);
    requires ascending: lw_ascending(holders, 0, n);
    assigns holders[0 .. n - 1], pss_rows(st)[0 .. lw_n - 1];
    ensures kept: \forall integer q; 0 <= q < lw_n ==> pss_rows(st)[q].low == \old(pss_rows(st)[q].low) &&
	pss_rows(st)[q].controlled == \old(pss_rows(st)[q].controlled);
    ensures holds: \forall integer q, low; 0 <= q < lw_n && pss_has{Pre}(pss_setting_row(st), q, low) ==>
	0 <= pss_rows(st)[q].rank[low] < n && holders[pss_rows(st)[q].rank[low]] == q;
    ensures high: \forall integer q; 0 <= q < lw_n ==> 0 <= pss_rows(st)[q].rank[0] < n && holders[pss_rows(st)[q].rank[0]] == q;
    ensures low: \forall integer q; 0 <= q < lw_n && pss_has{Pre}(pss_setting_row(st), q, 1) ==>
	0 <= pss_rows(st)[q].rank[1] < n && holders[pss_rows(st)[q].rank[1]] == q;
    ensures two: \forall integer q; 0 <= q < lw_n && pss_has{Pre}(pss_setting_row(st), q, 1) ==> pss_rows(st)[q].rank[0] != pss_rows(st)[q].rank[1];
    ensures urgent: \forall integer q, low, p, flow; 0 <= q < lw_n && pss_has{Pre}(pss_setting_row(st), q, low) && 0 <= p < lw_n &&
	pss_has{Pre}(pss_setting_row(st), p, flow) && pss_level_of{Pre}(pss_setting_row(st), q, low) < pss_level_of{Pre}(pss_setting_row(st), p, flow) ==>
	pss_rows(st)[q].rank[low] < pss_rows(st)[p].rank[flow]; */
static void pss_tell(struct pss_state *st, uint32_t *holders, uint32_t n);

/*@ requires given: pss_given(st, v) && \valid_read(pss_setting_row(st) + (0 .. lw_n - 1));
    requires apart: \separated(pss_setting_row(st) + (0 .. lw_n - 1), pss_holder_row(st) + (0 .. 3 * lw_n - 1), pss_rows(st) + (0 .. lw_n - 1));
    requires good: \forall integer k; lw_good(k) <==> pss_is_key(pss_setting_row(st), k, lw_n);
    requires formed: \forall integer q; 0 <= q < lw_n ==> 0 <= pss_rows(st)[q].low <= 1 &&
	(pss_rows(st)[q].controlled == 0 ==> pss_rows(st)[q].low == 0) &&
	(pss_rows(st)[q].controlled != 0 ==> pss_setting_row(st)[q].value[PSS_LOW_LEVEL] != LW_UNSET);
    requires few: pss_nlevels(pss_setting_row(st), lw_n) <= LW_BITMAP_SIZE;
    assigns pss_holder_row(st)[0 .. 2 * lw_n - 1], pss_rows(st)[0 .. lw_n - 1];
    ensures kept: \forall integer q; 0 <= q < lw_n ==> pss_rows(st)[q].low == \old(pss_rows(st)[q].low) &&
	pss_rows(st)[q].controlled == \old(pss_rows(st)[q].controlled);
    ensures holds: \forall integer q, low; 0 <= q < lw_n && pss_has{Pre}(pss_setting_row(st), q, low) ==>
	0 <= pss_rows(st)[q].rank[low] < 2 * lw_n && pss_rows(st)[q].rank[low] < LW_BITMAP_SIZE &&
	pss_holder_row(st)[pss_rows(st)[q].rank[low]] == q;
    ensures two: \forall integer q; 0 <= q < lw_n && pss_has{Pre}(pss_setting_row(st), q, 1) ==> pss_rows(st)[q].rank[0] != pss_rows(st)[q].rank[1];
    ensures ranked: pss_held(pss_holder_row(st)) ==> pss_ranked(pss_rows(st));
    ensures urgent: \forall integer q, low, p, flow; 0 <= q < lw_n && pss_has{Pre}(pss_setting_row(st), q, low) && 0 <= p < lw_n &&
	pss_has{Pre}(pss_setting_row(st), p, flow) && pss_level_of{Pre}(pss_setting_row(st), q, low) < pss_level_of{Pre}(pss_setting_row(st), p, flow) ==>
	pss_rows(st)[q].rank[low] < pss_rows(st)[p].rank[flow]; */
static void pss_rank(struct pss_state *st, const struct lw_view *v);

/*@ requires given: pss_given(st, v);
    requires ranked: pss_ranked(pss_rows(st)) && pss_held(pss_holder_row(st));
    requires sends: \forall integer q; 0 <= q < lw_n ==> (pss_can_send(q) <==> pss_eligible(v, q));
    assigns st->ready.summary, st->ready.word[0 .. 63], st->nlow, st->review_ns, pss_low_row(st)[0 .. lw_n - 1];
    ensures sound: pss_sound(st);
    ensures agrees: pss_agrees(&st->ready, pss_rows(st)); */
static void pss_rebuild(struct pss_state *st, const struct lw_view *v);
