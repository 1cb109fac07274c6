# SPDX-License-Identifier: GPL-2.0-only
# change.sh - settings change while packets wait and flow: no packet is lost, and the state of the policy is kept.
. /guest/checks.sh
wire

under() { # the qdisc under test below a shaper that is too slow, so that packets wait; three flows, and a counter
	tc qdisc add dev v0 root handle 1: htb default 1
	tc class add dev v0 parent 1: classid 1:1 htb rate 2mbit
	holds "$1" tc qdisc add dev v0 parent 1:1 handle 10: "$@"
	begin_count 5001 5002 5003
	traffic send 10.0.0.2 5001 0xb8 0 200 3000 >/tmp/one &
	one=$!
	traffic send 10.0.0.2 5002 0x28 0 1000 3000 >/tmp/two &
	two=$!
	traffic send 10.0.0.2 5003 0 0 1000 3000 >/tmp/three &
	three=$!
	waits "packets wait" waiting
}
waiting() { [ "$(backlog 10:)" -gt 50 ]; }

waits_there() { [ "$(fields class "$1" | awk '{ print $5 }')" -gt 50 ]; }

all_arrived() { # all_arrived KIND: after the changes
	if waiting; then pass "$1: packets waited"; else fault "$1: packets waited" "$(backlog 10:)"; fi
	kill $one $two $three
	wait $one $two $three
	tc class change dev v0 parent 1: classid 1:1 htb rate 1gbit
	drained "$1: drains" 10:
	end_count
	same "$1: all arrived" "$arrived" "$(cat /tmp/one) $(cat /tmp/two) $(cat /tmp/three)"
	echo "# $1: $arrived packets"
	clear
}

under pss classes 3 link 10mbit dscp EF=1,AF11=2 class 1 limit 30000 class 2 limit 30000 low_level 4 rate 4mbit class 3 limit 30000
for round in 1 2 3 4 5 6; do
	tc qdisc change dev v0 parent 1:1 handle 10: pss link $((5 + round))mbit class 2 rate $((1 + round % 3))mbit memory ${round}0ms &&
		tc class change dev v0 parent 10: classid 10:2 pss rate 0 share 30% &&
		tc class change dev v0 parent 10: classid 10:2 pss rate 2mbit share 0% &&
		tc qdisc change dev v0 parent 1:1 handle 10: pss sat paper class 3 level $((2 + round % 2)) &&
		tc qdisc change dev v0 parent 1:1 handle 10: pss sat exact dscp EF=$((1 + round % 3)) || fault "pss changes" "round $round"
done
all_arrived pss

# A change of a rate or a memory makes no debt, and none that has to be paid: the class has its new rate at once, the rest what is left.
holds "pss with a memory" tc qdisc add dev v0 root handle 10: pss bandwidth 2mbit classes 3 dscp EF=1,AF11=2 \
	class 2 limit 30000 low_level 4 rate 500kbit memory 5s burst 4p class 3 limit 30000
begin_count 5002 5003
offer 2 3000 1000
offer 3 9000 1000
sent_by() { fields class "$1" | cut -d' ' -f1; }
at_once() { # at_once KBIT SETTING...: class 2 has this rate in the 5 s after the change
	kbit=$1
	shift
	holds "pss $*" tc class change dev v0 parent 10: classid 10:2 pss "$@"
	two=$(sent_by 10:2) three=$(sent_by 10:3)
	sleep 5
	two=$(($(sent_by 10:2) - two)) three=$(($(sent_by 10:3) - three))
	share=$((100 * two * 2000 / (two + three)))     # in hundredths of a kbit/s
	if [ $share -ge $((95 * kbit)) ] && [ $share -le $((105 * kbit)) ]; then
		pass "pss $*: ${kbit}kbit at once"
	else
		fault "pss $*: ${kbit}kbit at once" "$two bytes, and $three of the rest"
	fi
}
at_once 900 rate 900kbit
at_once 500 rate 500kbit
at_once 300 rate 300kbit memory 1s
at_once 300 memory 4s
at_once 300 memory 1s
at_once 300 memory 15s
at_once 300 memory 1s
if waits_there 10:2 && waits_there 10:3; then pass "packets waited"; else fault "packets waited" "$(backlog 10:)"; fi
same "none was dropped" "$(reasons)" 0
holds "a faster link" tc qdisc change dev v0 root handle 10: pss bandwidth 1gbit
drained "pss drains" 10:
end_count
same "all arrived" "$arrived" "3000 9000"
clear

under pds classes 3 limit 100000 dscp EF=1,AF11=2 class 1 limit 30000 delay 8 class 2 limit 30000 delay 4 class 3 limit 30000
for round in 1 2 3 4 5 6; do
	tc qdisc change dev v0 parent 1:1 handle 10: pds limit $((100000 - round)) class 1 delay $((1 + round)) loss $((1 + round)) &&
		tc qdisc change dev v0 parent 1:1 handle 10: pds early peld qmin 99000 &&
		tc qdisc change dev v0 parent 1:1 handle 10: pds early off || fault "pds changes" "round $round"
done
all_arrived pds

for kind in lw_pf lw_codes; do
	timeout=
	[ $kind = lw_codes ] && timeout="timeout 0"
	under $kind classes 3 dscp EF=1,AF11=2 class 1 limit 30000 $timeout class 2 limit 30000 $timeout class 3 limit 30000 $timeout
	for round in 1 2 3 4 5 6; do
		for class in 1 2 3; do
			tc class change dev v0 parent 10: classid 10:$class $kind rate $(((round + class) % 3))mbit weight $((1 + round)) || fault "$kind changes" "round $round"
		done
		tc qdisc change dev v0 parent 1:1 handle 10: $kind tc ${round}s || fault "$kind changes" "round $round"
	done
	for class in 1 2 3; do tc class change dev v0 parent 10: classid 10:$class $kind rate 1mbit; done
	all_arrived $kind
done

# limits of a class
tc qdisc add dev v0 root handle 10: lw_pf classes 1 class 1 rate 0 limit 10
traffic send 10.0.0.2 5003 0 25 100 0
tc class change dev v0 parent 10: classid 10:1 lw_pf limit 20
traffic send 10.0.0.2 5003 0 25 100 0
same "a larger limit makes room" "$(backlog 10:)" 20
tc class change dev v0 parent 10: classid 10:1 lw_pf limit 5
traffic send 10.0.0.2 5003 0 1 100 0
same "a smaller one drops the newest, and refuses more" "$(backlog 10:) $(stat dropped_limit 10:1)" "5 46p"
clear

# a limit far below the backlog, also of bytes: all that is above it is dropped, below a parent that counts it
tc qdisc add dev v0 root handle 1: htb default 1
tc class add dev v0 parent 1: classid 1:1 htb rate 1gbit
tc qdisc add dev v0 parent 1:1 handle 10: lw_pf classes 1 class 1 rate 0 limit 1000
offer 3 300 100
offer 3 300 100
tc class change dev v0 parent 10: classid 10:1 lw_pf limit 7
same "a limit far below drops the rest" "$(backlog 10:) $(stat dropped_limit 10:1) $(reasons)" "7 593p 593"
agrees "and the parent knows"
# 142 bytes each
tc class change dev v0 parent 10: classid 10:1 lw_pf limit_bytes 500
same "so does one in bytes" "$(fields qdisc 10: | cut -d' ' -f4-5) $(stat dropped_limit 10:1)" "426 3 597p"
agrees "and the parent knows that"
clear

# a limit of memory: the class with most bytes loses its newest
memory() { tc -s -j qdisc show dev v0 root | grep -o '"memory_bytes":[0-9]*' | cut -d: -f2; }
waiting_in() { fields class "$1" | cut -d' ' -f5; }
below() { [ "$(memory)" -gt 0 ] && [ "$(memory)" -le "$1" ]; }
tc qdisc add dev v0 root handle 10: lw_pf classes 3 dscp EF=1,AF11=2 memlimit 100kb class 1 rate 0 class 2 rate 0 class 3 rate 0
says "memlimit is shown" "memlimit 100Kb" tc qdisc show dev v0 root
offer 1 5 1000
offer 3 100 1000
offer 2 5 1000
holds "memory stays below its limit" below 102400
same "the others lose nothing" "$(waiting_in 10:1) $(waiting_in 10:2) $(stat dropped_memory 10:1) $(stat dropped_memory 10:2)" "5 5 0p 0p"
same "each packet waits or was dropped for memory" "$(backlog 10:) $(reasons)" "$((10 + $(waiting_in 10:3))) $((100 - $(waiting_in 10:3)))"
echo "# memory: $(memory) bytes of $(backlog 10:) packets"
holds "a smaller limit" tc qdisc change dev v0 root handle 10: lw_pf memlimit 20kb
holds "drops at once" below 20480
kept=$(waiting_in 10:3)
show tc -s -j qdisc show dev v0
holds "no limit" tc qdisc change dev v0 root handle 10: lw_pf memlimit 0
offer 3 100 1000
same "holds all" "$(waiting_in 10:3) $(memory)" "$((kept + 100)) "
tc qdisc change dev v0 root handle 10: lw_pf memlimit 50kb
holds "one that comes later counts what waits" below 51200
clear

# an estimator of the qdisc, and none of a class
holds "an estimator" tc qdisc add dev v0 root handle 10: est 1sec 4sec lw_pf classes 1 class 1 rate 10mbit
for round in 1 2 3 4 5 6 7 8; do
	offer 3 25 1000
	sleep 0.5
done
same "is obeyed" "$(tc -s qdisc show dev v0 root | awk '{ for (i = 1; i < NF; i++) if ($i == "rate" && $(i + 2) ~ /pps$/) print ($(i + 2) + 0 > 5) }')" 1
refused "one of a class" "est is not for a class: give it to the qdisc" \
	tc class change dev v0 parent 10: classid 10:1 est 1sec 4sec lw_pf rate 1mbit
clear

# another number of classes, in one step
tc qdisc add dev v0 root handle 1: htb default 1
tc class add dev v0 parent 1: classid 1:1 htb rate 1gbit
tc qdisc add dev v0 parent 1:1 handle 10: lw_pf classes 3 dscp EF=1,AF11=2,CS1=3 class 1 rate 0 weight 3 class 2 rate 0 class 3 rate 0
begin_count 5001 5002 5003
offer 1 10 500
offer 2 20 500
offer 3 30 500
holds "fewer classes" tc qdisc replace dev v0 parent 1:1 handle 10: lw_pf classes 2
same "packets stay in their classes" "$(waiting_in 10:1) $(waiting_in 10:2)" "10 20"
same "those of the one that is gone are dropped, for a reason" "$(fields qdisc 10: | cut -d' ' -f3-5) $(reasons)" "30 16260 30 30"
agrees "and the parent knows it"
same "two classes are shown" "$(tc class show dev v0 | grep -c '^class lw_pf')" 2
says "what was set stays" "rate 0bit weight 3" tc class show dev v0 classid 10:1
says "its code points go to the default, which is the last" "classes 2 default 2 dscp AF11=2,EF=1 tc" tc qdisc show dev v0
offer 3 5 500
same "as do its packets" "$(waiting_in 10:2)" 25
holds "more classes, and what a class of them is" tc qdisc change dev v0 parent 1:1 handle 10: lw_pf classes 4 default 4 class 4 rate 0 limit 3 class 1 weight 1
offer 3 5 500
same "packets stay, and come" "$(waiting_in 10:1) $(waiting_in 10:2) $(waiting_in 10:3) $(waiting_in 10:4)" "10 25 0 3"
agrees "and the parent agrees"
refused "a change that is refused" "weight of class 1 is outside" tc qdisc change dev v0 parent 1:1 handle 10: lw_pf classes 2 class 1 weight 0
same "changes nothing" "$(waiting_in 10:4) $(reasons)" "3 32"
for class in 1 2 4; do tc class change dev v0 parent 10: classid 10:$class lw_pf rate 10mbit; done
drained "all drains" 10:
end_count
same "and arrived" "$arrived_sum" 38
same "the parent is empty" "$(fields qdisc 1: | cut -d' ' -f4-5)" "0 0"
same "what was sent is not forgotten" "$(fields qdisc 10: | cut -d' ' -f2) $(stat dropped_limit 10:4)" "38 2p"
clear

# state that a change keeps: pds counts arrivals and losses over its history
tc qdisc add dev v0 root handle 10: pds classes 2 default 1 limit 10 history infinite class 1 rate 0
traffic send 10.0.0.2 5003 0 25 100 0
same "received and lost" "$(stat received 10:1) $(stat lost 10:1)" "25p 15p"
tc qdisc change dev v0 root handle 10: pds limit 20 class 1 delay 3 loss 2
same "still known after a change" "$(stat received 10:1) $(stat lost 10:1) $(backlog 10:)" "25p 15p 10"
traffic send 10.0.0.2 5003 0 25 100 0
same "and counted on" "$(stat received 10:1) $(stat lost 10:1) $(backlog 10:)" "50p 30p 20"
tc qdisc change dev v0 root handle 10: pds limit 5
same "a smaller limit drops nothing by itself" "$(backlog 10:)" 20
traffic send 10.0.0.2 5003 0 1 100 0
same "but two go with the next packet" "$(stat lost 10:1) $(backlog 10:)" "32p 19"
traffic send 10.0.0.2 5003 0 14 100 0
same "and with each until it is reached" "$(stat lost 10:1) $(backlog 10:)" "60p 5"
traffic send 10.0.0.2 5003 0 1 100 0
same "then one" "$(stat lost 10:1) $(backlog 10:)" "61p 5"
clear

# the victim: the smallest loss * lost / received, ties by the smaller coefficient. Class 1 has received 10; then four packets of
# class 2 arrive: 0 = 0, class 1 loses (1/10); 0 of class 2, so it loses (4/2); then class 1 (2/10), and once more
tc qdisc add dev v0 root handle 10: pds classes 2 default 1 dscp EF=2 limit 10 history infinite class 1 rate 0 class 2 rate 0 loss 4
traffic send 10.0.0.2 5003 0 10 100 0
traffic send 10.0.0.2 5003 0xb8 4 100 0
same "another class gives up its packets" "$(stat dropped_victim 10:1) $(stat dropped_victim 10:2)" "3p 1p"
clear
unwire
