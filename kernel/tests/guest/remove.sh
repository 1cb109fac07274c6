# SPDX-License-Identifier: GPL-2.0-only
# remove.sh - qdiscs, devices, namespaces and the module are removed while packets flow and wait.
. /guest/checks.sh
wire
traffic send 10.0.0.2 5003 0 1000000 500 2000 &
sender=$!
rounds=0
while [ $rounds -lt 4 ]; do
	for kind in $(cat /guest/kinds); do
		link=
		[ $kind = pss ] && link="link 20mbit class 2 low_level 4 rate 8mbit"
		tc qdisc replace dev v0 root handle 1: $kind classes 3 $link || fault "replace under load" $kind
		tc filter add dev v0 parent 1: matchall classid 1:2 || fault "filter under load" $kind
		tc qdisc del dev v0 root || fault "delete under load" $kind
		tc qdisc add dev v0 root handle 1: htb default 1
		tc class add dev v0 parent 1: classid 1:1 htb rate 100kbit
		tc qdisc add dev v0 parent 1:1 handle 10: $kind classes 3 $link || fault "add below htb" $kind
		tc -s class show dev v0 >/dev/null || fault "show under load" $kind
		tc qdisc del dev v0 parent 1:1 handle 10: || fault "delete below htb" $kind
		tc qdisc del dev v0 root
	done
	rounds=$((rounds + 1))
done
if kill -0 $sender 2>/dev/null; then pass "$((rounds * $(wc -l </guest/kinds))) qdiscs came and went under load"; else fault "the sender" "ended"; fi
tc qdisc add dev v0 root handle 1: pds classes 3 limit 5000 class 3 rate 0
many() { [ "$(backlog 1:)" -gt 50 ]; }
waits "packets wait" many
refused "the module stays while it is used" "" rmmod sch_linkweir
pass "packets wait: the device goes"
ip link del v0
kill $sender 2>/dev/null
wait $sender 2>/dev/null
ip netns del b
tries=0
until rmmod sch_linkweir 2>/dev/null || [ $tries -ge 50 ]; do
	sleep 0.1
	tries=$((tries + 1))
done
same "the module goes" "$(lsmod | grep -c sch_linkweir)" 0
holds "and comes again" modprobe sch_linkweir
rmmod sch_linkweir
ip link add d0 type dummy
ip link set d0 up
holds "tc asks for it by the kind" tc qdisc add dev d0 root lw_codes classes 2
same "it is there" "$(lsmod | grep -c '^sch_linkweir')" 1
ip link del d0
