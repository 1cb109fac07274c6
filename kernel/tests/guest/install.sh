#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# install.sh - init of an installed system: the qdiscs exist, as their manual pages say, and carry packets.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
judge() { if [ "$1" -eq 0 ]; then echo "ok - $2"; else echo "not ok - $2: $3"; fi; }
datagrams() { # datagrams NUMBER: sent through X, a dummy that drops them
	perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(Proto => "udp", PeerAddr => "192.0.2.2:9") or die $!;
		for (1 .. shift) { $s->send("x" x 1000) or die $! }' "$1" 2>&1
}

ip link add X type dummy
ip link set X up
ip addr add 192.0.2.1/24 dev X
kinds=$(sed -n 's/^LINKWEIR_KIND(\(.*\))$/\1/p' /linkweir/kernel/build/tree/kinds.h)
test -n "$kinds"
judge $? "the module's kinds are known" "kinds.h lists none"
for kind in $kinds; do
	case $kind in
	pss) options="classes 3 link 20mbit dscp EF=1,AF=2 class 2 level 1 low_level 3 rate 8mbit class 3 level 2" ;;
	lw_codes) options="classes 2 class 1 rate 5mbit timeout 100ms" ;;
	pds) options="classes 8" ;;
	lw_pf) options="classes 2" ;;
	*) options="classes 2 link 20mbit" ;;
	esac
	output=$(tc qdisc add dev X root $kind $options 2>&1)
	judge $? "tc qdisc add dev X root $kind $options" "$output"
	output=$(datagrams 10)
	judge $? "datagrams through $kind" "$output"
	output=$(tc qdisc change dev X root $kind class 1 limit 50 2>&1)
	judge $? "tc qdisc change dev X root $kind class 1 limit 50" "$output"
	output=$(datagrams 10)
	judge $? "more of them" "$output"
	output=$(tc -s qdisc show dev X | sed -n 's/.* \([0-9]*\) pkt (dropped \([0-9]*\),.*/\1 \2/p')
	[ "${output% *}" -ge 20 ] && [ "${output#* }" = 0 ]
	judge $? "all of them left" "$output"
	echo "json $(tc -s -j qdisc show dev X | tr -d '\n')"
	tc -s class show dev X
	output=$(tc qdisc del dev X root 2>&1)
	judge $? "tc qdisc del dev X root" "$output"
done
output=$(tc qdisc add dev X root pds classes 0 2>&1)
case $output in
*"classes is outside 1 .. 4096"*) judge 0 "a refusal says why" ;;
*) judge 1 "a refusal says why" "$output" ;;
esac
for page in $kinds; do
	found=$(find /usr/share/man /usr/local/share/man -name "tc-$page.8*")
	test -n "$found"
	judge $? "tc-$page(8)" "is not there"
done
echo "module $(modinfo -n sch_linkweir)"
echo "ended install"
echo b >/proc/sysrq-trigger
sleep 60
