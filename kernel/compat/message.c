// SPDX-License-Identifier: GPL-2.0-only
/*
 * message.c - texts with numbers in them, for kernels whose acknowledgements only point at a text.
 *
 * A text must outlive the request, since it is copied after the lock is gone. So every text is kept and found again until the
 * module goes; RTNL, which every caller holds, guards the list. There are about as many as parameters and classes that
 * were ever refused, since no text repeats a name that the sender made up; beyond a bound one text serves all.
 */
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/rtnetlink.h>

#include "compat.h"

#ifndef NL_SET_ERR_MSG_FMT

#define MOST_TEXTS 1024

struct text {
	struct list_head list;
	char text[80];
};

static LIST_HEAD(texts);
static unsigned int ntexts;

static const char *keep(const char *wanted)
{
	struct text *text;

	ASSERT_RTNL();
	list_for_each_entry(text, &texts, list)
		if (!strcmp(text->text, wanted))
			return text->text;
	text = ntexts < MOST_TEXTS ? kmalloc(sizeof(*text), GFP_KERNEL) : NULL;
	if (!text)
		return "refused: see the ranges in the help";
	strscpy(text->text, wanted, sizeof(text->text));
	list_add(&text->list, &texts);
	ntexts++;
	return text->text;
}

void linkweir_refuse(struct netlink_ext_ack *extack, const char *fmt, ...)
{
	char text[80];
	va_list args;

	if (!extack)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	extack->_msg = keep(text);
}

void linkweir_compat_exit(void)
{
	struct text *text, *next;

	list_for_each_entry_safe(text, next, &texts, list)
		kfree(text);
}

#endif
