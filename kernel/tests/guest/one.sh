# SPDX-License-Identifier: GPL-2.0-only
# one.sh - a module that was built with a single policy, pss: it works, its vectors pass, and the others are not there.
. /guest/checks.sh
wire
holds "pss" tc qdisc add dev v0 root handle 1: pss classes 3 bandwidth 20mbit class 2 low_level 4 rate 8mbit class 3 level 3
holds "a packet passes" ping -c 1 -W 2 10.0.0.2
says "it was sent" "Sent 98 bytes 1 pkt" tc -s qdisc show dev v0 root
clear
holds "the vectors pass" modprobe linkweir_vectors
says "they were replayed" "all as expected" dmesg
for kind in pds lw_pf lw_codes; do
	refused "$kind is not there" "" tc qdisc add dev v0 root handle 1: $kind classes 2 link 20mbit
done
unwire
