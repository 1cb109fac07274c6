// SPDX-License-Identifier: GPL-2.0-only
/*
 * attributes.c - sends one request with the attributes given as words, well-formed or not; tc can only send well-formed ones.
 *
 *   attributes DEVICE add|change|class KIND WORD...
 *
 * The qdisc is 1: at the root, the class 1:1. A word is NAME=VALUE, a number of the attribute's width or a text; NAME/N, N zero
 * bytes; NAME{ a nest, or NAME[ one without NLA_F_NESTED, up to }; `cut`, an attribute longer than the rest of its nest. NAME is
 * as in linkweir_netlink.h, in lower case, or a number. Prints "ok", or "TEXT (at WORD)" with the word that the kernel points at.
 * Exit code 0; 1 if the request was refused; 2 for a wrong command.
 */
#include <net/if.h>
#include <stdbool.h>
#include <linux/pkt_sched.h>

#include "../linkweir_netlink.h"
#include "request.h"

#define MOST_DEEP 8
#define MOST_WORDS 64

enum { OPTIONS, QDISC, CLASS, PARAM };  /* what an attribute belongs to */

static const struct {
	int where;
	const char *name;
	int type;
	size_t width;                   /* 0: a text or a nest */
} known[] = {
	{ OPTIONS, "options", TCA_OPTIONS, 0 },
	{ QDISC, "classes", TCA_LINKWEIR_CLASSES, 4 },
	{ QDISC, "link", TCA_LINKWEIR_LINK, 8 },
	{ QDISC, "bandwidth", TCA_LINKWEIR_BANDWIDTH, 8 },
	{ QDISC, "overhead", TCA_LINKWEIR_OVERHEAD, 4 },
	{ QDISC, "mpu", TCA_LINKWEIR_MPU, 4 },
	{ QDISC, "cells", TCA_LINKWEIR_CELLS, 4 },
	{ QDISC, "split_gso", TCA_LINKWEIR_SPLIT_GSO, 4 },
	{ QDISC, "memlimit", TCA_LINKWEIR_MEMLIMIT, 8 },
	{ QDISC, "dscp", TCA_LINKWEIR_DSCP, 0 },
	{ QDISC, "default", TCA_LINKWEIR_DEFAULT, 4 },
	{ QDISC, "param", TCA_LINKWEIR_PARAM, 0 },
	{ QDISC, "class", TCA_LINKWEIR_CLASS, 0 },
	{ CLASS, "number", TCA_LINKWEIR_CLASS_NUMBER, 4 },
	{ CLASS, "limit", TCA_LINKWEIR_CLASS_LIMIT, 4 },
	{ CLASS, "limit_bytes", TCA_LINKWEIR_CLASS_LIMIT_BYTES, 8 },
	{ CLASS, "rate", TCA_LINKWEIR_CLASS_RATE, 8 },
	{ CLASS, "param", TCA_LINKWEIR_CLASS_PARAM, 0 },
	{ PARAM, "name", TCA_LINKWEIR_PARAM_NAME, 0 },
	{ PARAM, "value", TCA_LINKWEIR_PARAM_VALUE, 8 },
};

static void wrong(const char *word)
{
	fprintf(stderr, "attributes: what is %s?\n", word);
	exit(2);
}

/* parses the attribute at the start of a word, and its width */
static int type_of(const char *word, size_t length, int where, size_t *width)
{
	size_t i;

	*width = 0;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].where != where || strlen(known[i].name) != length || strncmp(known[i].name, word, length) != 0)
			continue;
		*width = known[i].width;
		return known[i].type;
	}
	if (word[0] < '0' || word[0] > '9')
		wrong(word);
	return atoi(word);
}

static void put_word(struct request *r, const char *word, int where)
{
	size_t length = strcspn(word, "=/"), width;
	int type = type_of(word, length, where, &width);
	uint64_t value = strtoull(word + length + (word[length] != 0), NULL, 10);

	if (word[length] == '/')
		request_put(r, type, NULL, value);
	else if (word[length] == '=' && width)
		request_put(r, type, &value, width);
	else if (word[length] == '=')
		request_put(r, type, word + length + 1, strlen(word + length + 1) + 1);
	else
		wrong(word);
}

/* the kind of attributes in a nest */
static int inside(int where, int type, bool class)
{
	if (where == OPTIONS)
		return class ? CLASS : QDISC;
	return where == QDISC && type == TCA_LINKWEIR_CLASS ? CLASS : PARAM;
}

int main(int argc, char **argv)
{
	static struct request r;
	struct rtattr *nests[MOST_DEEP];
	int places[MOST_DEEP + 1] = { OPTIONS }, depth = 0, i;
	uint32_t offsets[MOST_WORDS] = { 0 };
	struct answer answer;
	bool class;

	if (argc < 4 || argc > MOST_WORDS)
		wrong("the command");
	class = !strcmp(argv[2], "class");
	if (class)
		request_begin(&r, RTM_NEWTCLASS, 0, (int)if_nametoindex(argv[1]), 0x10000, 0x10001);
	else
		request_begin(&r, RTM_NEWQDISC, strcmp(argv[2], "add") ? 0 : NLM_F_CREATE | NLM_F_EXCL, (int)if_nametoindex(argv[1]),
			      TC_H_ROOT, 0x10000);
	request_put(&r, TCA_KIND, argv[3], strlen(argv[3]) + 1);
	for (i = 4; i < argc; i++) {
		char *word = argv[i], last = word[strlen(word) - (word[0] != 0)];
		size_t width;
		int type;

		offsets[i] = (uint32_t)((char *)request_end(&r) - (char *)&r);
		if (!strcmp(word, "}") && depth) {
			request_close(&r, nests[--depth]);
			offsets[i] = 0;
		} else if (!strcmp(word, "cut")) {
			request_put(&r, 1, NULL, 0)->rta_len = 100;
		} else if ((last == '{' || last == '[') && depth < MOST_DEEP) {
			type = type_of(word, strlen(word) - 1, places[depth], &width);
			nests[depth] = request_put(&r, type | (last == '{' ? NLA_F_NESTED : 0), NULL, 0);
			places[depth + 1] = inside(places[depth], type, class);
			depth++;
		} else {
			put_word(&r, word, places[depth]);
		}
	}
	if (depth)
		wrong("a nest without its end");
	answer = request_send(request_socket(), &r);
	if (!answer.error) {
		puts("ok");
		return 0;
	}
	for (i = 4; i < argc && (!answer.at || offsets[i] != answer.at); i++)
		;
	printf("%s (at %s)\n", answer.text ? answer.text : strerror(-answer.error), i < argc ? argv[i] : "nothing");
	return 1;
}
