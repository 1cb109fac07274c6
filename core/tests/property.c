/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * property.c - random lives (body.h) of every policy, and the arithmetic compared with a wider type.
 *
 *   property FIRST LAST [POLICY...]  one life of each policy (or of those named) for each seed FIRST .. LAST
 *   property FILE                    one life from a file, with every operation printed
 *
 * A failing life is shrunk by leaving bytes out, and printed with its seed, its operations and its bytes.
 */
#include "body.h"
#include "named.h"

#include "soft.h"

#define LIFE_BYTES 4096u

/* xorshift64*: Vigna, 2016 */
static uint64_t random_next(uint64_t *x)
{
	*x ^= *x >> 12;
	*x ^= *x << 25;
	*x ^= *x >> 27;
	return *x * 0x2545f4914f6cdd1du;
}

static size_t random_life(uint64_t seed, uint32_t policy, uint8_t *data)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u + policy + 1;
	size_t size, i;

	random_next(&x);
	size = 128 + (size_t)(random_next(&x) % (LIFE_BYTES - 128));
	for (i = 0; i < size; i++)
		data[i] = (uint8_t)(random_next(&x) >> 32);
	data[0] = (uint8_t)policy;
	return size;
}

/* Leaves out smaller and smaller pieces while the life still fails. */
static size_t shrink(uint8_t *data, size_t size)
{
	struct body_counts counts;
	uint8_t shorter[LIFE_BYTES];
	char wrong[512];
	size_t piece, from;

	for (piece = size / 2; piece > 0; piece /= 2) {
		for (from = 1; from + piece <= size;) {
			memcpy(shorter, data, from);
			memcpy(shorter + from, data + from + piece, size - from - piece);
			memset(&counts, 0, sizeof(counts));
			if (body_lives(shorter, size - piece, &counts, wrong, sizeof(wrong))) {
				from += piece;
				continue;
			}
			size -= piece;
			memcpy(data, shorter, size);
		}
	}
	return size;
}

static void print_life(uint8_t *data, size_t size)
{
	struct body_counts counts;
	uint64_t digest;
	char wrong[512];
	size_t i;

	memset(&counts, 0, sizeof(counts));
	body_live(data, size, BODY_STILL, true, &counts, &digest, wrong, sizeof(wrong));
	printf("%s\nlife:", wrong);
	for (i = 0; i < size; i++)
		printf(" %02x", data[i]);
	printf("\n");
}

static bool lives_hold(uint64_t first, uint64_t last, char **names)
{
	struct body_counts counts[64], *c;
	uint8_t data[LIFE_BYTES];
	char wrong[512];
	uint64_t seed;
	uint32_t i;

	memset(counts, 0, sizeof(counts));
	for (seed = first; seed <= last; seed++) {
		for (i = 0; i < lw_npolicies; i++) {
			size_t size = random_life(seed, i, data);

			if (!is_named(lw_policies[i]->name, names))
				continue;
			if (body_lives(data, size, counts + i, wrong, sizeof(wrong)))
				continue;
			printf("seed %" PRIu64 ": %s\nshrunk:\n", seed, wrong);
			print_life(data, shrink(data, size));
			return false;
		}
	}
	for (i = 0, c = counts; i < lw_npolicies; i++, c++) {
		const char *name = lw_policies[i]->name;

		if (!is_named(name, names))
			continue;
		printf("%-8s %lu lives (%lu refused), %lu operations, %lu sent, %lu drops, %lu waits and %lu buckets bounded,"
		       " digest %016" PRIx64 "\n", name, c->lives, c->refused, c->operations, c->sends, c->drops, c->waits,
		       c->buckets, c->digest);
		/* lives that never reach what is checked prove nothing */
		if (2 * c->refused > c->lives || !c->sends || (strstr("pds codes codel fq_codel dualpi2", name) && !c->drops) ||
		    (!c->waits && strstr("rr wrr drr dualpi2", name)) || (!c->buckets && !strcmp(name, "pss"))) {
			printf("%s was hardly tested\n", name);
			return false;
		}
	}
	return true;
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide;

/* m * 2^(exponent - bias), truncated to 32 bits, shifted bit by bit */
static uint64_t soft_of(wide m, uint32_t exponent)
{
	if (!m)
		return 0;
	for (; m >> 32; m >>= 1)
		exponent++;
	for (; !(m >> 31); m <<= 1)
		exponent--;
	return (uint64_t)exponent << 32 | (uint64_t)m;
}

/* 2^(x / 2^32) in 2^-63, 0 <= x < 2^32, from the square roots of 2 */
static uint64_t power_of_two(uint32_t x)
{
	wide power = (wide)1 << 63, root = (wide)1 << 64, square;
	uint32_t bit;

	for (bit = 1u << 31; bit; bit >>= 1) {
		wide guess = 0, b;

		square = root << 63;            /* the root of a number in 2^-63 */
		for (b = (wide)1 << 63; b; b >>= 1)
			if ((guess | b) * (guess | b) <= square)
				guess |= b;
		root = guess;
		if (x & bit)
			power = power * root >> 63;
	}
	return (uint64_t)power;
}

static bool soft_wrong(const char *what, uint64_t a, uint64_t b)
{
	printf("%s(%016" PRIx64 ", %016" PRIx64 ")\n", what, a, b);
	return false;
}

static bool soft_pair_holds(uint64_t a, uint64_t b)
{
	wide ma = (uint32_t)a, mb = (uint32_t)b, more = a > b ? ma : mb, less = a > b ? mb : ma;
	uint32_t ea = (uint32_t)(a >> 32), eb = (uint32_t)(b >> 32), most = ea > eb ? ea : eb, apart = ea > eb ? ea - eb : eb - ea;

	if (lw_soft_mul(a, b) != soft_of(ma * mb, ea + eb - LW_SOFT_BIAS))
		return soft_wrong("lw_soft_mul", a, b);
	if (lw_soft_div(a, b) != soft_of((ma << 64) / mb, ea - eb + LW_SOFT_BIAS - 64))
		return soft_wrong("lw_soft_div", a, b);
	less = apart < 64 ? (less << 31) >> apart : 0;
	if (lw_soft_add(a, b) != soft_of((more << 31) + less, most - 31))
		return soft_wrong("lw_soft_add", a, b);
	if (lw_soft_sub(a, b) != (a > b ? soft_of((more << 31) - less, most - 31) : 0))
		return soft_wrong("lw_soft_sub", a, b);
	return true;
}

/* a sum of products, by single operations and by lw_soft_gather */
static bool soft_sum_holds(const uint64_t *a, const uint64_t *n, uint32_t count)
{
	struct lw_soft_sum sum = { 0, 0 };
	uint64_t total = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		total = lw_soft_add(total, lw_soft_mul(a[i], lw_soft_of(n[i])));
		lw_soft_gather(&sum, a[i], n[i]);
		if (lw_soft_total(&sum) != total)
			return soft_wrong("lw_soft_gather", a[i], n[i]);
	}
	return true;
}

static bool soft_one_holds(uint64_t a, uint32_t n, uint64_t most)
{
	uint32_t e = (uint32_t)(a >> 32), shift, bit;
	wide m = (uint32_t)a, root, value;
	uint64_t fine = (uint64_t)(uint32_t)a << 32, got;
	int64_t log = ((int64_t)e + 31 - (int64_t)LW_SOFT_BIAS) * (1 << 24);

	got = lw_soft_sqrt(a);
	shift = e - LW_SOFT_BIAS - 2 * ((uint32_t)(got >> 32) - LW_SOFT_BIAS);
	root = (uint32_t)got;
	if (!(root >> 31) || shift > 63 || root * root > m << shift || (root + 1) * (root + 1) <= m << shift)
		return soft_wrong("lw_soft_sqrt", a, got);
	for (bit = 1u << 23; bit; bit >>= 1) {          /* by squares, with twice the bits */
		wide square = (wide)fine * fine;

		log += square >> 127 ? (int64_t)bit : 0;
		fine = (uint64_t)(square >> (square >> 127 ? 64 : 63));
	}
	if (lw_soft_log2(a) != log && lw_soft_log2(a) != log - 1)
		return soft_wrong("lw_soft_log2", a, (uint64_t)log);
	shift = e + n - LW_SOFT_BIAS;
	value = shift < 64 ? m << shift : 0 - shift < 64 ? m >> (0 - shift) : shift >> 31 ? 0 : (wide)1 << 64;
	if (lw_soft_floor(a, n, most) != (value < most ? value : most))
		return soft_wrong("lw_soft_floor", a, n);
	got = lw_soft_halve(a, n);
	if (got != (e - LW_SOFT_BIAS + (1u << 30) < n ? 0 : (uint64_t)(e - n) << 32 | (uint32_t)a))
		return soft_wrong("lw_soft_halve", a, n);
	return true;
}

static bool soft_power_holds(uint64_t x)
{
	uint64_t got = lw_soft_exp2(x), exact = power_of_two((uint32_t)x), shown = (got & UINT32_MAX) << 32;
	bool listed = !(x & 0xfffffff) || !(x & 0xf0ffffff);    /* x is in one of the tables, which are rounded to nearest */
	uint64_t above = (uint64_t)1 << (listed ? 31 : 32), below = listed ? above : exact >> 27;

	if (got >> 32 != (x >> 32) + LW_SOFT_BIAS - 31 || lw_excess(shown, exact) > above || lw_excess(exact, shown) > below)
		return soft_wrong("lw_soft_exp2", x, exact);
	return true;
}

static bool soft_holds(void)
{
	/* products whose low half is 0: one of n = 2^32, and 2^62 where the sum is four times the factor */
	static const uint64_t ones[] = { LW_SOFT_ONE, LW_SOFT_ONE }, large[] = { 1, (uint64_t)1 << 32 };
	static const uint64_t quarter[] = { LW_SOFT_ONE + ((uint64_t)2 << 32), LW_SOFT_ONE }, half[] = { 1, 1u << 31 };
	uint64_t x = 88172645463325252u, i, factors[16], numbers[16];
	wide ln_2 = 0;

	for (i = 1; i < 96; i++)                /* ln 2 = sum of 1 / (i 2^i), in 2^-96 */
		ln_2 += ((wide)1 << (96 - i)) / i;
	if (LW_LN2_32 != (uint64_t)((ln_2 + ((wide)1 << 63)) >> 64) || LW_LN_2 != soft_of(LW_LN2_32, LW_SOFT_BIAS - 32) ||
	    LW_LOG2_E != soft_of(((wide)1 << 127) / (ln_2 >> 32), LW_SOFT_BIAS - 63) ||
	    LW_SOFT_ONE != soft_of(1, LW_SOFT_BIAS))
		return soft_wrong("constants", LW_LN_2, LW_LOG2_E);
	if (lw_soft_of(0) || lw_soft_mul(0, LW_SOFT_ONE) || lw_soft_mul(LW_SOFT_ONE, 0) || lw_soft_div(0, LW_SOFT_ONE) ||
	    lw_soft_div(LW_SOFT_ONE, 0) || lw_soft_add(0, 0) || lw_soft_add(LW_SOFT_ONE, 0) != LW_SOFT_ONE ||
	    lw_soft_add(0, LW_SOFT_ONE) != LW_SOFT_ONE || lw_soft_sub(0, 0) || lw_soft_sub(0, LW_SOFT_ONE) ||
	    lw_soft_sub(LW_SOFT_ONE, 0) != LW_SOFT_ONE || lw_soft_halve(0, 0) || lw_soft_floor(0, 31, 7) || lw_soft_sqrt(0))
		return soft_wrong("of 0", 0, 0);
	if (!soft_sum_holds(ones, large, 2) || !soft_sum_holds(quarter, half, 2))
		return false;
	for (i = 0; i < 256; i++)
		if (!soft_power_holds(i << 24 | i << 32))
			return false;
	for (i = 0; i < 100000; i++) {
		uint64_t r = random_next(&x), value = random_next(&x) >> (r & 63);
		uint32_t apart = (uint32_t)(r >> 6 & 127), ea = LW_SOFT_BIAS + (uint32_t)(r >> 13 & 255) - 160;
		uint64_t ma = (uint32_t)random_next(&x) | 1u << 31, mb = (uint32_t)random_next(&x) | 1u << 31;

		ma = r >> 21 & 7 ? ma : r >> 24 & 1 ? UINT32_MAX : 1u << 31;
		mb = r >> 25 & 7 ? mb : r >> 28 & 1 ? ma : 1u << 31;
		apart = r >> 29 & 1 ? apart & 3 : apart;
		if (lw_soft_of(value) != soft_of(value, LW_SOFT_BIAS))
			return soft_wrong("lw_soft_of", value, 0);
		factors[i % 16] = (uint64_t)(r >> 56 & 1 ? ea : LW_SOFT_BIAS - 60 - (uint32_t)(r >> 13 & 3)) << 32 | ma;
		numbers[i % 16] = r >> 55 & 1 ? value : value >> 32;
		if (i % 16 == 15 && !soft_sum_holds(factors, numbers, 16))
			return false;
		if (!soft_pair_holds((uint64_t)ea << 32 | ma, (uint64_t)(ea - apart) << 32 | mb) ||
		    !soft_pair_holds((uint64_t)(ea - apart) << 32 | mb, (uint64_t)ea << 32 | ma) ||
		    !soft_one_holds((uint64_t)ea << 32 | ma, (uint32_t)(r >> 30 & 63), value >> 1) ||
		    !soft_one_holds((uint64_t)(LW_SOFT_BIAS - (1u << 30) + (uint32_t)(r >> 36 & 127)) << 32 | ma,
				    (uint32_t)(r >> 43 & 127), value >> 1) ||
		    (i < 2000 && !soft_power_holds(random_next(&x) >> (r >> 50 & 31) & 0x3fffffffffffffffu)))
			return false;
	}
	return true;
}
#endif

static bool arithmetic_holds(void)
{
#ifdef __SIZEOF_INT128__
	uint64_t x = 88172645463325252u;
	uint32_t i;

	if (!soft_holds())
		return false;
	for (i = 0; i < 200000; i++) {
		uint64_t r = random_next(&x), a = random_next(&x) >> (r & 63), b = random_next(&x) >> (r >> 6 & 63);
		uint64_t c = random_next(&x) >> (r >> 12 & 63), d = random_next(&x) >> (r >> 18 & 63);
		wide product = (wide)a * b;
		struct lw_u128 p = lw_mul(a, b);
		struct lw_pace pace = lw_pace_of(c ? c : 1);
		wide time = (wide)8000000000u << pace.shift, rate = c ? c : 1;

		if (p.hi != (uint64_t)(product >> 64) || p.lo != (uint64_t)product) {
			printf("lw_mul(%" PRIu64 ", %" PRIu64 ")\n", a, b);
			return false;
		}
		if (lw_product_less(a, b, c, d) != (product < (wide)c * d)) {
			printf("lw_product_less(%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64 ")\n", a, b, c, d);
			return false;
		}
		if (lw_mul_div(a, b, c) != (!c || product / c >> 64 ? UINT64_MAX : (uint64_t)(product / c))) {
			printf("lw_mul_div(%" PRIu64 ", %" PRIu64 ", %" PRIu64 ")\n", a, b, c);
			return false;
		}
		if (pace.mult != (2 * time + rate) / (2 * rate) || pace.shift > 63 || (rate > 1 && pace.mult >> 32) ||
		    (rate > 1 && pace.shift < 63 && (4 * time + rate) / (2 * rate) >> 32 == 0)) {
			printf("lw_pace_of(%" PRIu64 ") is %" PRIu64 " >> %" PRIu32 "\n", c, pace.mult, pace.shift);
			return false;
		}
	}
#endif
	return lw_mul_div(3, 5, 0) == UINT64_MAX && lw_pace_of(0).mult == 0;
}

int main(int argc, char **argv)
{
	uint8_t data[LIFE_BYTES];

	if (argc == 2) {
		FILE *file = fopen(argv[1], "rb");

		if (!file)
			return 2;
		print_life(data, fread(data, 1, sizeof(data), file));
		fclose(file);
		return 0;
	}
	if (argc < 3) {
		fputs("usage: property FIRST LAST [POLICY...] | property FILE\n", stderr);
		return 2;
	}
	return arithmetic_holds() && lives_hold(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10), argv + 3) ? 0 : 1;
}
