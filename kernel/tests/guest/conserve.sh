# SPDX-License-Identifier: GPL-2.0-only
# conserve.sh - every packet that arrived was sent, was dropped or waits, in our counters and in the parent's.
#
# Classes are blocked (rate 0) while packets arrive, so it is known exactly how many must wait and be dropped; no check depends on time.
. /guest/checks.sh
wire

parent() { # parent KIND: a qdisc 1: whose class 1:1 gets everything
	case $1 in
	htb)
		tc qdisc add dev v0 root handle 1: htb default 1
		tc class add dev v0 parent 1: classid 1:1 htb rate 1gbit ;;
	tbf) tc qdisc add dev v0 root handle 1: tbf rate 1gbit burst 100k limit 10m ;;
	drr)
		tc qdisc add dev v0 root handle 1: drr
		tc class add dev v0 parent 1: classid 1:1 drr
		tc filter add dev v0 parent 1: matchall classid 1:1 ;;
	prio)
		tc qdisc add dev v0 root handle 1: prio
		tc filter add dev v0 parent 1: matchall classid 1:1 ;;
	esac
}

parents="htb tbf"
grep -q checks=full /proc/cmdline && parents="htb tbf drr prio"
for parent in $parents; do
	for kind in pds lw_pf lw_codes; do
		case="$kind under $parent"
		parent $parent
		options="class 1 rate 0 limit 20 class 2 rate 0 limit 30 class 3 rate 0 limit 40"
		[ $kind = pds ] && options="limit 60 $options"
		[ $kind = lw_codes ] && options="class 1 rate 0 limit 20 timeout 0 class 2 rate 0 limit 30 timeout 0 class 3 rate 0 limit 40 timeout 0"
		holds "$case" tc qdisc add dev v0 parent 1:1 handle 10: $kind classes 3 dscp EF=1,AF11=2 $options
		begin_count 5001 5002 5003
		for round in 1 2; do
			offer 1 25 500
			agrees "$case: backlogs while it fills"
			offer 2 25 1000
			offer 3 25 100
			agrees "$case: backlogs when it is full"
		done
		if [ $kind = pds ]; then kept=60; else kept=90; fi
		same "$case: keeps what it has room for" "$(backlog 10:)" $kept
		same "$case: drops the rest" "$(fields qdisc 10: | cut -d' ' -f3)" $((150 - kept))
		same "$case: each for a reason" "$(reasons)" $((150 - kept))
		for class in 1 2 3; do
			tc class change dev v0 parent 10: classid 10:$class $kind rate 10mbit
		done
		drained "$case: drains" 10:
		agrees "$case: backlogs when it is empty"
		same "$case: the parent is empty" "$(fields qdisc 1: | cut -d' ' -f4-5)" "0 0"
		end_count
		same "$case: what was kept arrived" "$arrived_sum" $kept
		same "$case: and was counted as sent, here" "$(fields qdisc 10: | cut -d' ' -f2)" $kept
		same "$case: and by the parent" "$(fields qdisc 1: | cut -d' ' -f2)" $kept
		clear
	done
done

# pss has no channels to block: a slow parent that is then opened
tc qdisc add dev v0 root handle 1: htb default 1
tc class add dev v0 parent 1: classid 1:1 htb rate 200kbit
holds "pss under htb" tc qdisc add dev v0 parent 1:1 handle 10: pss classes 3 link 20mbit dscp EF=1,AF11=2 \
	class 1 limit 20 class 2 limit 30 low_level 4 rate 8mbit class 3 limit 40
begin_count 5001 5002 5003
offer 3 1 100
offer 1 50 500
agrees "pss: backlogs while it fills"
offer 2 50 1000
offer 3 60 100
agrees "pss: backlogs when it is full"
tc class change dev v0 parent 1: classid 1:1 htb rate 1gbit
drained "pss: drains" 10:
agrees "pss: backlogs when it is empty"
same "pss: nothing is lost track of" "$(fields qdisc 10: | awk '{ print $2 + $3 + $5 }')" 161
end_count
same "pss: what was sent arrived" "$arrived_sum" "$(fields qdisc 10: | cut -d' ' -f2)"
same "pss: the parent is empty" "$(fields qdisc 1: | cut -d' ' -f4-5)" "0 0"
clear

# dropped by age, when leaving and to make room; a child that returns no packet though it had some
for parent in $parents; do
	case="lw_codes under $parent"
	parent $parent
	holds "$case, with timeouts" tc qdisc add dev v0 parent 1:1 handle 10: lw_codes classes 2 default 1 class 1 rate 0 limit 10 timeout 10ms class 2 rate 0
	begin_count 5001 5002 5003
	offer 3 10 500
	sleep 0.1
	offer 3 5 500
	same "$case: the old made room" "$(stat dropped_expired 10:1)" 5p
	agrees "$case: backlogs after these drops"
	sleep 0.1
	tc class change dev v0 parent 10: classid 10:1 lw_codes rate 10mbit
	drained "$case: all the others were dropped by age" 10:
	same "$case: when their turn came" "$(stat dropped_leaving 10:1)" 10p
	agrees "$case: backlogs when nothing waits"
	tc class change dev v0 parent 10: classid 10:1 lw_codes timeout 1000s
	offer 3 3 500
	drained "$case: still carries packets" 10:
	end_count
	same "$case: nothing old arrived" "$arrived_sum" 3
	same "$case: every drop has a reason" "$(reasons)" "$(fields qdisc 10: | cut -d' ' -f3)"
	same "$case: the parent is empty" "$(fields qdisc 1: | cut -d' ' -f4-5)" "0 0"
	clear
done

# drr stops serving at a child that returns no packet: a blocked child holds up the others, one that dropped all its packets does not
tc qdisc add dev v0 root handle 1: drr
for class in 1 2; do
	tc class add dev v0 parent 1: classid 1:$class drr
	tc filter add dev v0 parent 1: protocol ip prio $class flower ip_proto udp dst_port 500$class classid 1:$class
done
holds "lw_codes and a fifo under drr" tc qdisc add dev v0 parent 1:1 handle 10: lw_codes classes 1 class 1 rate 0 timeout 10ms
begin_count 5001 5002
offer 1 100 500
offer 2 5 500
same "the blocked one holds up the other" "$(backlog 1:)" 105
sleep 0.1
tc class change dev v0 parent 10: classid 10:1 lw_codes rate 10mbit
drained "the other still sends when the packets of the first are dropped" 1:
same "all of them" "$(stat dropped_leaving 10:1)" 100p
end_count
same "what arrived is the other's" "$arrived" "0 5"
clear

# bounds in bytes: 5 packets of 1042 bytes fit into 5500
tc qdisc add dev v0 root handle 10: lw_pf classes 1 class 1 rate 0 limit_bytes 5500
offer 3 9 1000
same "a bound in bytes" "$(fields qdisc 10: | cut -d' ' -f3-5)" "4 5210 5"
same "counted as such" "$(stat dropped_limit 10:1)" 4p
clear

# the return value of enqueue covers the sender's packet, and no other
tc qdisc add dev v0 root handle 10: pds classes 2 default 1 dscp EF=2 limit 10 class 1 rate 0 limit 15 class 2 rate 0 loss 4
same "the newcomer that goes is refused" "$(traffic offer 10.0.0.2 5003 0 25 100)" 15
same "one that another makes room for is not" "$(traffic offer 10.0.0.2 5001 0xb8 2 100) $(stat dropped_victim 10:1)" "1 16p"
tc qdisc change dev v0 root handle 10: pds limit 100
same "one beyond its class's limit is" "$(traffic offer 10.0.0.2 5003 0 10 100) $(stat dropped_limit 10:1)" "4 4p"
clear

# a limit far below the backlog: an arrival drops two packets at most, and both are reported to the parents
for parent in $parents; do
	case="a lowered limit under $parent"
	parent $parent
	holds "$case" tc qdisc add dev v0 parent 1:1 handle 10: pds classes 2 default 1 dscp EF=2 limit 500 class 1 rate 0 class 2 rate 0
	for round in 1 2 3 4; do offer 3 100 100; done
	holds "$case: it is lowered" tc qdisc change dev v0 parent 1:1 handle 10: pds limit 100
	same "$case: none goes by that" "$(backlog 10:) $(reasons)" "400 0"
	offer 1 100 100
	same "$case: one packet fewer waits with each that came" "$(backlog 10:) $(reasons)" "300 200"
	agrees "$case: backlogs after each"
	for round in 1 2 3; do offer 1 100 100; done
	same "$case: it is kept from then on" "$(backlog 10:) $(reasons)" "100 700"
	agrees "$case: backlogs when it is reached"
	clear
done

# old packets are dropped to make room, at most 64 per arrival
holds "lw_codes" tc qdisc add dev v0 root handle 10: lw_codes classes 1 class 1 rate 0 limit_bytes 30000 timeout 10ms
ip link set v0 mtu 30000
offer 3 100 100
offer 3 100 100
sleep 0.1
# 200 packets of 142 bytes; one of 15042 needs room of 95
offer 3 1 15000
same "64 old packets go, which is not enough for one that comes" "$(backlog 10:) $(stat dropped_expired 10:1) $(stat dropped_limit 10:1)" "136 64p 1p"
offer 3 1 15000
same "with the next it is" "$(backlog 10:) $(stat dropped_expired 10:1) $(stat dropped_limit 10:1)" "106 95p 1p"
ip link set v0 mtu 1500
clear

# a device that goes down drops its backlog and starts again
parent htb
tc qdisc add dev v0 parent 1:1 handle 10: pds classes 1 class 1 rate 0
offer 3 20 1000
same "packets wait" "$(backlog 10:)" 20
ip link set v0 down
same "none when the device is down" "$(backlog 10:) $(backlog 1:)" "0 0"
ip link set v0 up
ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
tc class change dev v0 parent 10: classid 10:1 pds rate 1mbit
holds "it carries packets again" ping -c 1 10.0.0.2
offer 3 5 1000
drained "and drains" 10:
clear
unwire
