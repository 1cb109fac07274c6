# SPDX-License-Identifier: GPL-2.0-only
# queues.sh - pss_mq on a device with four transmission queues: one reservation for all of them.
#
# The destination port decides the transmission queue: 5001, 5011 and 5021 use the first one, 5002, 5012 and 5022 the second, and so on.
. /guest/checks.sh
wire 4
tc qdisc add dev v0 clsact
for port in 5001 5002 5003 5004 5011 5012 5013 5014 5021 5022 5023 5024; do
	holds "port $port has a queue" tc filter add dev v0 egress protocol ip flower ip_proto udp dst_port $port \
		action skbedit queue_mapping $((port % 10 - 1))
done
ports="5011 5012 5013 5014 5021 5022 5023 5024"

sent_by_queue() { tc -s qdisc show dev v0 root | awk '{ for (i = 1; i < NF; i++) if ($i == "sent_by_queue") print $(i + 1) }'; }
classes() { # bytes sent by each of three classes
	tc -s class show dev v0 | awk '$1 == "class" { mine = $2 ~ /^pss/ } mine && $1 == "Sent" { printf "%s ", $2 }'
}

# one qdisc is shown, with its classes
holds "pss_mq" tc qdisc add dev v0 root handle 10: pss_mq bandwidth 10mbit classes 3 dscp EF=1,AF11=2 class 2 low_level 4 rate 3mbit
same "one qdisc is shown, beside clsact" "$(tc qdisc show dev v0 | cut -d' ' -f2 | tr '\n' ' ')" "pss_mq clsact "
same "and three classes" "$(tc class show dev v0 | grep -c '^class pss_mq 10:')" 3
says "with the settings of pss" "low_level 4 rate 3Mbit" tc class show dev v0 classid 10:2
show tc -s -j qdisc show dev v0
refused "help" "Usage: ... pss_mq classes N" tc qdisc add dev v0 root pss_mq help
refused "a child" "" tc qdisc add dev v0 parent 10:1 pfifo
clear
holds "the preset" tc qdisc add dev v0 root handle 10: pss_mq preset voice bandwidth 18mbit
clear

# what it is not for
refused "below another qdisc" "pss_mq is the root of a device: below another qdisc use pss" sh -c '
	tc qdisc add dev v0 root handle 1: prio && tc qdisc add dev v0 parent 1:1 pss_mq classes 1 bandwidth 10mbit'
clear
ip link add d0 type dummy
refused "one queue" "pss_mq is for many transmission queues: for one use pss" tc qdisc add dev d0 root pss_mq classes 1 bandwidth 10mbit
ip link del d0
stab="tc qdisc add dev v0 root stab overhead 20 linklayer atm pss_mq classes 1 bandwidth 10mbit"
case $(uname -r) in
6.1.*)
	holds "a size table, of which this kernel does not tell the qdisc in time" $stab
	says "is not used" "pss_mq does not use the size table (stab)" dmesg
	clear ;;
*) refused "a size table" "stab is not used for many transmission queues: use overhead, mpu or atm" $stab ;;
esac
refused "an estimator" "Cannot attach rate estimator to a multi-queue root qdisc" tc qdisc add dev v0 root est 1s 8s pss_mq classes 1 bandwidth 10mbit
refused "no classes" "classes is missing: give 1 .. 4096" tc qdisc add dev v0 root pss_mq bandwidth 10mbit
refused "a reservation above the bandwidth" "rate of class 1: the reservation must be below the link's capacity" \
	tc qdisc add dev v0 root pss_mq classes 2 bandwidth 10mbit class 1 low_level 4 rate 32mbit

# four senders of each class on four queues, and voice on one of them. The link is the clock: 100 bits of it are 30 of AF.
pss="classes 3 dscp EF=1,AF11=2 class 1 limit 100 class 2 low_level 4 rate 3mbit limit 100 class 3 limit 100"
spread() { # spread KIND: sets `p99` of voice, and checks what AF and the link got
	holds "$1" tc qdisc add dev v0 root handle 10: "$1" bandwidth 10mbit $pss
	begin_measure 5001 $ports
	for queue in 1 2 3 4; do
		greedy 501$queue 0x28 1000 2000
		greedy 502$queue 0 1000 2000
	done
	greedy 5001 0xb8 200 3000
	sleep 1
	set -- "$1" $(classes)
	sleep 8
	set -- "$@" $(classes)
	quiet
	drained "$1: drains" 10:
	by_queue=$(sent_by_queue)
	end_count
	af=$(echo "$@" | awk '{ af = $6 - $3; all = $5 + $6 + $7 - $2 - $3 - $4; printf "%.4f", 10 * af / all }')
	echo "# $1: AF $af of 10 Mbit/s, sent by queue $by_queue"
	if echo "$af" | awk '{ exit !($1 > 2.97 && $1 < 3.03) }'; then pass "$1: AF has its reservation within 1 %"; else fault "$1: AF has its reservation within 1 %" "$af Mbit/s"; fi
	# 42 bytes are headers of Ethernet, IP and UDP; one packet of 1042 bytes begins before the first is received
	rate=$(awk 'NF == 7 { bits += 8 * ($3 + 42 * $2); if (!first || $5 < first) first = $5; if ($6 > last) last = $6 }
		END { printf "%.0f", (bits - 8 * 1042) * 1e9 / (last - first) }' /tmp/count)
	echo "# $1: all $rate bit/s"
	if [ "$rate" -le 10010000 ] && [ "$rate" -ge 9900000 ]; then pass "$1: no more than the bandwidth is sent, and no less"; else fault "$1: no more than the bandwidth is sent, and no less" "$rate bit/s"; fi
	p99=$(awk '$1 == 5001 { print $7 }' /tmp/count)
	ports_of=$(awk 'NF == 7 { sent[$1 % 10] += $2 } END { print sent[1] "p," sent[2] "p," sent[3] "p," sent[4] "p" }' /tmp/count)
	echo "# $1: 99 % of voice within $p99 ns"
	same "$1: each drop has a reason" "$(reasons)" "$(fields qdisc 10: | cut -d' ' -f3)"
	same "$1: what was sent arrived" "$(awk 'NF == 7 { sum += $2 } END { print sum }' /tmp/count)" "$(fields qdisc 10: | cut -d' ' -f2)"
	clear
}
spread pss
one=$p99
spread pss_mq
# nothing promises how much each has: the senders of a class compete for the places below one limit
same "all four queues sent" "$(echo "$by_queue" | tr , '\n' | awk '$1 + 0 > 0' | wc -l)" 4
same "each its own packets" "$by_queue" "$ports_of"
# 1042 bytes at 10 Mbit/s
if [ "$p99" -le $((one + 833600)) ]; then pass "voice waits at most one packet longer than with one queue"; else fault "voice waits at most one packet longer than with one queue" "$p99 instead of $one ns"; fi
# settings change while packets wait in all four queues: none is lost; a class is removed and added
pss="classes 3 dscp EF=1,AF11=2 class 1 limit 30000 class 2 low_level 4 rate 300kbit limit 30000 class 3 limit 30000"
holds "pss_mq" tc qdisc add dev v0 root handle 10: pss_mq bandwidth 500kbit $pss
begin_count $ports
for queue in 1 2 3 4; do
	traffic send 10.0.0.2 501$queue 0x28 500 1000 0
	traffic send 10.0.0.2 502$queue 0 500 1000 0
done
for round in 1 2 3 4 5 6 7 8 9 10; do
	tc qdisc change dev v0 root handle 10: pss_mq bandwidth $((round * 200 + 200))kbit class 2 rate ${round}00kbit &&
		tc class change dev v0 parent 10: classid 10:2 pss_mq memory ${round}0ms || fault "a change" "round $round"
	sleep 0.05
done
holds "another class" tc qdisc replace dev v0 root handle 10: pss_mq classes 4 class 4 level 5
if [ "$(backlog 10:)" -gt 1000 ]; then pass "packets waited"; else fault "packets waited" "$(backlog 10:)"; fi
tc qdisc change dev v0 root handle 10: pss_mq bandwidth 1gbit
drained "all drains" 10:
end_count
same "all arrived" "$arrived" "500 500 500 500 500 500 500 500"

# a filter, a priority, a limit of memory, super-packets
tc qdisc change dev v0 root handle 10: pss_mq bandwidth 1kbit memlimit 100kb
begin_count 5003 5004 5021 5022 5023 5024          # so that nothing is refused there
tc filter add dev v0 parent 10: protocol ip flower ip_proto udp dst_port 5004 classid 10:1
tc filter add dev v0 parent 10: protocol ip flower ip_proto udp dst_port 5003 action drop
traffic send 10.0.0.2 5004 0 5 100 0
same "a filter gives the class" "$(fields class 10:1 | awk '{ print $2 + $5 }')" 5
dropped=$(fields qdisc 10: | cut -d' ' -f3)
traffic send 10.0.0.2 5003 0 5 100 0
same "or drops" "$(($(fields qdisc 10: | cut -d' ' -f3) - dropped)) $(tc -s qdisc show dev v0 root | grep -o 'dropped_filter [0-9]*')" "5 dropped_filter 5"
before=$(fields class 10:3 | awk '{ print $2 + $5 }')
traffic super 10.0.0.2 5022 0 1 20000 1000
same "a super-packet is split" "$(($(fields class 10:3 | awk '{ print $2 + $5 }') - before))" 20
for queue in 1 2 3 4; do traffic send 10.0.0.2 502$queue 0 100 1000 0; done
same "each drop has a reason, such as memory" "$(reasons) $(tc -s qdisc show dev v0 root | grep -c 'dropped_memory [1-9]')" "$(fields qdisc 10: | cut -d' ' -f3) 1"

end_count

# outages: what waits is dropped, and it starts again
ip link set v0 down
same "none waits when the device is down" "$(fields qdisc 10: | cut -d' ' -f4-5)" "0 0"
same "with a reason" "$(reasons)" "$(fields qdisc 10: | cut -d' ' -f3)"
ip link set v0 up
ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
tc qdisc change dev v0 root handle 10: pss_mq bandwidth 100mbit memlimit 0
begin_count $ports
for queue in 1 2 3 4; do traffic send 10.0.0.2 501$queue 0x28 25 1000 0; done
drained "it carries packets again" 10:
end_count
same "all of them" "$arrived_sum" 100
clear

# without a shaper: a policy on a device that is never full
holds "link in place of bandwidth" tc qdisc add dev v0 root handle 10: pss_mq link 10mbit $pss
begin_count $ports
for queue in 1 2 3 4; do traffic send 10.0.0.2 501$queue 0x28 100 1000 0; done
end_count
same "all arrive" "$arrived" "100 100 100 100 0 0 0 0"
clear

# added, replaced and deleted under load, and the device with it
for port in 5011 5012 5023 5024; do greedy $port 0 1000 500; done
for round in 1 2 3 4 5; do
	for kind in pss_mq pss mq pss_mq mq; do
		case $kind in
		mq) tc qdisc replace dev v0 root handle 2: mq || fault "mq" "round $round" ;;
		*) tc qdisc replace dev v0 root handle 1: $kind bandwidth 5mbit $pss || fault "$kind" "round $round" ;;
		esac
		sleep 0.05
		clear
	done
done
tc qdisc add dev v0 root handle 1: pss_mq bandwidth 5mbit $pss
sleep 0.05
pass "replaced under load"
quiet

# several qdiscs below mq: each would reserve the same link
clear
tc qdisc add dev v0 root handle 1: mq
reserve="classes 2 link 10mbit class 1 low_level 4 rate 8mbit"
same "one below mq may reserve" "$(tc qdisc add dev v0 parent 1:1 handle 11: pss $reserve 2>&1)" ""
says "two reserve more than the link" "Warning: qdiscs below mq reserve 16000000 of 10000000 bit/s: use pss_mq as root" \
	tc qdisc add dev v0 parent 1:2 handle 12: pss $reserve
says "and four" "reserve 32000000 of 10000000 bit/s" sh -c "tc qdisc add dev v0 parent 1:3 handle 13: pss $reserve; tc qdisc add dev v0 parent 1:4 handle 14: pss $reserve"
# the texts of these warnings have numbers that change with the link; more of them than the module keeps
for rate in $(seq 1 1100); do echo "qdisc change dev v0 parent 1:1 handle 11: pss link $((10000000 + rate))bit"; done >/tmp/rates
tc -batch /tmp/rates >/dev/null 2>/tmp/warnings
same "each rate of a link has its own warning" "$(sort -u /tmp/warnings | grep -c 'reserve 32000000 of 1000[0-9]* bit/s')" 1100
tc qdisc change dev v0 parent 1:1 handle 11: pss link 10mbit 2>/dev/null
says "also by a change of a class" "reserve 30000000 of 10000000 bit/s" tc class change dev v0 parent 13: classid 13:1 pss rate 6mbit
for queue in 1 2 3; do tc qdisc change dev v0 parent 1:$queue handle 1$queue: pss class 1 rate 2mbit 2>/dev/null; done
same "not if they share it" "$(tc qdisc change dev v0 parent 1:4 handle 14: pss class 1 rate 2mbit 2>&1)" ""
same "nor if each has a bandwidth" "$(for queue in 1 2 3 4; do tc qdisc change dev v0 parent 1:$queue handle 1$queue: pss bandwidth 2500kbit class 1 rate 0 share 80% 2>&1; done)" ""
clear
tc qdisc add dev v0 root handle 1: pss_mq bandwidth 5mbit $pss
traffic send 10.0.0.2 5011 0 100 1000 0
unwire
same "the device goes" "$(ip link show v0 2>/dev/null)" ""
holds "and then the module can" rmmod sch_linkweir
modprobe sch_linkweir
