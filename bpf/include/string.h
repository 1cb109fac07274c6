/* SPDX-License-Identifier: GPL-2.0-only */
/* string.h - what the core uses of it, for a compiler without a C library. */
#ifndef LINKWEIR_BPF_STRING_H
#define LINKWEIR_BPF_STRING_H

/*
 * The compiler expands a call whose length is a small constant. Other lengths are those of rows of a policy's state: whole words. The core
 * only asks whether two rows differ.
 */
#define memset(to, byte, n) \
	(__builtin_constant_p(n) && (n) <= 128 ? (void)__builtin_memset((to), (byte), __builtin_constant_p(n) && (n) <= 128 ? (n) : 0) \
					     : lw_clear_words((to), (n)))
#define memcpy(to, from, n) __builtin_memcpy((to), (from), (n))
#define memcmp(a, b, n) lw_words_differ((a), (b), (n))

static inline void lw_clear_words(void *to, unsigned long n);
static inline int lw_words_differ(const void *a, const void *b, unsigned long n);

#endif
