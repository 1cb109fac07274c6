#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# The first process of the kernel that runs tdc: its folder is this script's.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH HOME=/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mkdir -p /tmp/tdc /run/netns
here=${0%/*}
cp -r "$here"/. /tmp/tdc
cd /tmp/tdc || exit
python3 tdc.py -f tc-tests/qdiscs/pss.json
echo "tdc ended: $?"
exec python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
