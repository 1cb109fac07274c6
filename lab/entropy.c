// SPDX-License-Identifier: BSD-3-Clause
/*
 * entropy - put before the C library (LD_PRELOAD) it gives user-mode Linux numbers that follow from LINKWEIR_SEED instead of the
 * host's entropy, so that a run can be repeated. SplitMix64 (Steele, Lea and Flood 2014). For experiments only.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

ssize_t getrandom(void *buffer, size_t bytes, unsigned int flags)
{
	static uint64_t state;
	static int known;
	unsigned char *out = buffer;
	size_t i;

	(void)flags;
	if (!known) {
		const char *seed = getenv("LINKWEIR_SEED");

		state = seed ? strtoull(seed, NULL, 10) : 0;
		known = 1;
	}
	for (i = 0; i < bytes; i++) {
		uint64_t z = state += 0x9e3779b97f4a7c15u;

		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
		out[i] = (unsigned char)(z ^ (z >> 31));
	}
	return (ssize_t)bytes;
}
