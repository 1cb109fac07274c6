// SPDX-License-Identifier: GPL-2.0-only
/*
 * planted - a module with three faults, to prove that the debug kernel sees such: a read of freed memory, a wait under a spinlock, and
 * two locks taken in both orders. Loading it is refused after that.
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
	spin_lock(&planted_first);      /* first: the other two make lockdep give up */
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
MODULE_DESCRIPTION("Faults that a debug kernel must see");
MODULE_LICENSE("GPL");
