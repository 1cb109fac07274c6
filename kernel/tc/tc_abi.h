/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tc_abi.h - the parts of tc that a plugin uses, since tc installs no headers. The layout is that of iproute2 4.16 and later;
 * since 6.9 the first argument of each function points to const, which does not change the calling convention.
 */
#ifndef LINKWEIR_TC_ABI_H
#define LINKWEIR_TC_ABI_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <linux/types.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt, __u32 block, bool *has);
};

enum output_type { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
#define COLOR_NONE 6

int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr_flags(struct rtattr *tb[], int max, struct rtattr *rta, int len, unsigned short flags);
int print_color_u64(enum output_type t, int color, const char *key, const char *fmt, uint64_t value);
int print_color_s64(enum output_type t, int color, const char *key, const char *fmt, int64_t value);
int print_color_string(enum output_type t, int color, const char *key, const char *fmt, const char *value);
void open_json_object(const char *name);
void close_json_object(void);
void open_json_array(enum output_type t, const char *name);
void close_json_array(enum output_type t, const char *end);
bool is_json_context(void);

#endif
