// SPDX-License-Identifier: GPL-2.0-only
/*
 * planted - a module with three faults, to prove that the debug kernel detects them: a read of freed memory, a sleep under a
 * spinlock, and two locks taken in both orders. Then its loading fails, so it need not be removed.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static DEFINE_SPINLOCK(planted_first);
static DEFINE_SPINLOCK(planted_second);

static int __init planted_init(void)
{
	char *memory = kmalloc(64, GFP_KERNEL);

	if (!memory)
		return -ENOMEM;
	spin_lock(&planted_first);      /* first, since lockdep stops checking after either of the other faults */
	spin_lock(&planted_second);
	spin_unlock(&planted_second);
	spin_unlock(&planted_first);
	spin_lock(&planted_second);
	spin_lock(&planted_first);
	spin_unlock(&planted_first);
	msleep(1);
	spin_unlock(&planted_second);

	OPTIMIZER_HIDE_VAR(memory);
	kfree(memory);
	pr_info("planted: %d\n", READ_ONCE(memory[3]));
	return -ENODEV;
}
module_init(planted_init);
MODULE_DESCRIPTION("Faults that a debug kernel must detect");
MODULE_LICENSE("GPL");
