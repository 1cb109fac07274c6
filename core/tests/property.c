/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * property.c - random lives (body.h) of every policy, and the arithmetic against a wider type.
 *
 *   property FIRST LAST      seeds, one life of each policy per seed
 *   property FILE            one life from a file, every operation printed
 *
 * A failing life is shrunk by leaving bytes out and told with its seed, its last operations and its bytes.
 */
#include "body.h"

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

/* Leave out ever smaller pieces while the life still fails. */
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

static void tell(uint8_t *data, size_t size)
{
	struct body_counts counts;
	uint64_t digest;
	char wrong[512];
	size_t i;

	memset(&counts, 0, sizeof(counts));
	body_live(data, size, false, true, &counts, &digest, wrong, sizeof(wrong));
	printf("%s\nlife:", wrong);
	for (i = 0; i < size; i++)
		printf(" %02x", data[i]);
	printf("\n");
}

static bool lives_hold(uint64_t first, uint64_t last)
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

			if (body_lives(data, size, counts + i, wrong, sizeof(wrong)))
				continue;
			printf("seed %" PRIu64 ": %s\nshrunk:\n", seed, wrong);
			tell(data, shrink(data, size));
			return false;
		}
	}
	for (i = 0, c = counts; i < lw_npolicies; i++, c++) {
		const char *name = lw_policies[i]->name;

		printf("%-8s %lu lives (%lu refused), %lu operations, %lu sent, %lu drops, %lu waits and %lu buckets bounded,"
		       " digest %016" PRIx64 "\n", name, c->lives, c->refused, c->operations, c->sends, c->drops, c->waits,
		       c->buckets, c->digest);
		/* a test that asks nothing proves nothing */
		if (2 * c->refused > c->lives || !c->sends || (strstr("pds codes codel fq_codel", name) && !c->drops) ||
		    (!c->waits && strchr("rwd", name[0])) || (!c->buckets && !strcmp(name, "pss"))) {
			printf("%s was hardly tested\n", name);
			return false;
		}
	}
	return true;
}

static bool arithmetic_holds(void)
{
#ifdef __SIZEOF_INT128__
	__extension__ typedef unsigned __int128 wide;
	uint64_t x = 88172645463325252u;
	uint32_t i;

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
		tell(data, fread(data, 1, sizeof(data), file));
		fclose(file);
		return 0;
	}
	if (argc != 3) {
		fputs("usage: property FIRST LAST | property FILE\n", stderr);
		return 2;
	}
	return arithmetic_holds() && lives_hold(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10)) ? 0 : 1;
}
