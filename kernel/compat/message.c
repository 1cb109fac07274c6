// SPDX-License-Identifier: GPL-2.0-only
/*
 * message.c - refusal texts with numbers, for kernels whose extended acknowledgements hold only a pointer to a constant text.
 *
 * A text must outlive the request, since the kernel copies it after it has released the lock. So texts are kept until the module is
 * unloaded, and used again. RTNL, which every caller holds, protects the list. There are about as many texts as combinations of
 * parameter and class that were ever refused, but a warning repeats rates, and they change all the time on a link that fades. Above a
 * bound, the text that was not used for longest gets the new words: as many others came since, so its request was answered long ago.
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
		if (!strcmp(text->text, wanted)) {
			list_move(&text->list, &texts);
			return text->text;
		}
	if (ntexts == MOST_TEXTS) {
		text = list_last_entry(&texts, struct text, list);
		list_del(&text->list);
	} else {
		text = kmalloc(sizeof(*text), GFP_KERNEL);
		if (!text)
			return "refused: see the ranges in the help";
		ntexts++;
	}
	strscpy(text->text, wanted, sizeof(text->text));
	list_add(&text->list, &texts);
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
