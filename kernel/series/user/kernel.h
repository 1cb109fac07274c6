/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel.h - as much of the kernel as the algorithm of sch_pss.c and its KUnit test need, for a program that replays the vectors
 * without a kernel. The packet path is left out.
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/rtnetlink.h>
#include "pss_uapi.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;

#define U32_MAX UINT32_MAX
#define U64_MAX ((u64)~0ULL)
#define NSEC_PER_SEC 1000000000L
#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define noinline __attribute__((noinline))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define cmp_int(a, b) (((a) > (b)) - ((a) < (b)))
#define sort(base, n, size, compare, swap) qsort(base, n, size, compare)

static inline u64 div64_u64_rem(u64 a, u64 b, u64 *rest)
{
	*rest = a % b;
	return a / b;
}

static inline u64 mul_u64_u64_shr(u64 a, u64 b, unsigned int shift)
{
	return (u64)((unsigned __int128)a * b >> shift);
}

static inline u64 mul_u64_u64_div_u64(u64 a, u64 b, u64 c)
{
	return (u64)((unsigned __int128)a * b / c);
}

static inline unsigned int __ffs64(u64 word)
{
	return (unsigned int)__builtin_ctzll(word);
}

/* bitmaps */

#define BITS_TO_BYTES(n) (((n) + 63) / 64 * 8)

static inline bool __test_and_set_bit(unsigned long n, unsigned long *bits)
{
	bool was = bits[n / 64] >> (n % 64) & 1;

	bits[n / 64] |= 1UL << (n % 64);
	return was;
}

static inline void bitmap_zero(unsigned long *bits, unsigned int n)
{
	memset(bits, 0, BITS_TO_BYTES(n));
}

/* ranges */

struct netlink_range_validation {
	u64 min, max;
};

struct nla_policy {
	int type;
	const struct netlink_range_validation *range;
};

enum { NLA_U32, NLA_U64, NLA_FLAG, NLA_NESTED };
#define NLA_POLICY_FULL_RANGE(type_, range_) { .type = type_, .range = range_ }
#define NETLINK_MAX_FMTMSG_LEN 80

/* lists */

struct list_head {
	struct list_head *next, *prev;
};

#define INIT_LIST_HEAD(list) ((list)->next = (list)->prev = (list))
#define list_empty(list) ((list)->next == (list))
#define list_entry(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define list_first_entry(list, type, member) list_entry((list)->next, type, member)
#define list_last_entry(list, type, member) list_entry((list)->prev, type, member)

static inline void list_add_tail(struct list_head *item, struct list_head *list)
{
	item->prev = list->prev;
	item->next = list;
	list->prev->next = item;
	list->prev = item;
}

static inline void list_del(struct list_head *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
}

/* strings */

static inline int kstrtou64(const char *text, int base, u64 *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, base);
	return *text < '0' || *text > '9' || *end || errno;
}

static inline bool strstarts(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

#define strscpy(to, from) ((int)(strlen(from) < sizeof(to) ? strlen(strcpy(to, from)) : -E2BIG))

/* KUnit */

struct kunit {
	const void *param_value;
	jmp_buf abort;
	bool failed;
};

struct kunit_case {
	void (*run)(struct kunit *test);
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
};

#define GFP_KERNEL 0
#define kunit_kzalloc(test, size, flags) calloc(1, size)
#define kunit_kcalloc(test, n, size, flags) calloc(n, size)
#define kunit_kfree(test, pointer) free(pointer)
#define KUNIT_FAIL_AND_ABORT(test, ...) \
	(printf("# " __VA_ARGS__), printf("\n"), (test)->failed = true, longjmp((test)->abort, 1))
#define KUNIT_ASSERT_NOT_NULL(test, pointer) KUNIT_CHECK(test, (pointer) != NULL)
#define KUNIT_ASSERT_LT(test, a, b) KUNIT_CHECK(test, (a) < (b))
#define KUNIT_ASSERT_GT(test, a, b) KUNIT_CHECK(test, (a) > (b))
#define KUNIT_EXPECT_LT(test, a, b) KUNIT_CHECK(test, (a) < (b))
#define KUNIT_EXPECT_GT(test, a, b) KUNIT_CHECK(test, (a) > (b))
#define KUNIT_CHECK(test, truth) \
	do { \
		if (!(truth)) \
			KUNIT_FAIL_AND_ABORT(test, "%s", #truth); \
	} while (0)
#define KUNIT_CASE_PARAM(function, params) { function }
#define KUNIT_ARRAY_PARAM_DESC(name, array, description)
#define kunit_test_suites(suite) \
	int main(void) \
	{ \
		return replay_all((suite)->test_cases[0].run); \
	}

static int replay_all(void (*run)(struct kunit *test));
