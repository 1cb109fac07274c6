# SPDX-License-Identifier: GPL-2.0-only
# smoke.sh - the module loads, its self-test ran, and each kind carries packets.
. /guest/checks.sh
wire
says "the self-test ran" "all as expected" dmesg
for kind in pss pds pf codes; do
	link=
	[ $kind = pss ] && link="link 20mbit"
	holds "add $kind" in_a tc qdisc add dev v0 root handle 1: $kind classes 3 $link dscp EF=1,AF=2
	holds "ping through $kind" in_a ping -c 2 10.0.0.2
	show in_a tc -s -j qdisc show dev v0
	holds "delete $kind" in_a tc qdisc del dev v0 root
done
unwire
