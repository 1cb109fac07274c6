# SPDX-License-Identifier: GPL-2.0-only
# change.sh - settings change while packets wait and flow: none is lost, none is reordered, and what is remembered stays.
. /guest/checks.sh
wire
packets=3000

load() { # three flows, and a counter
	begin_count 5001 5002 5003
	in_a traffic send 10.0.0.2 5001 0xb8 $packets 200 1000 &
	one=$!
	in_a traffic send 10.0.0.2 5002 0x28 $packets 1000 1000 &
	two=$!
	in_a traffic send 10.0.0.2 5003 0 $packets 1000 1000 &
	three=$!
}

all_arrived() { # all_arrived KIND
	wait $one $two $three
	drained "$1: drains" 10:
	end_count
	same "$1: all arrived" "$arrived" "$packets $packets $packets"
}

busy() { kill -0 $one 2>/dev/null || kill -0 $two 2>/dev/null || kill -0 $three 2>/dev/null; }

under() { # the qdisc under test below a shaper, so that packets wait
	in_a tc qdisc add dev v0 root handle 1: htb default 1
	in_a tc class add dev v0 parent 1: classid 1:1 htb rate 10mbit
	in_a tc qdisc add dev v0 parent 1:1 handle 10: "$@"
}

under pss classes 3 link 10mbit dscp EF=1,AF11=2 class 1 limit 10000 class 2 limit 10000 low_level 4 rate 4mbit class 3 limit 10000
load
changes=0
while busy; do
	in_a tc qdisc change dev v0 parent 1:1 handle 10: pss link $((5 + changes % 6))mbit class 2 rate $((1 + changes % 3))mbit memory ${changes}0ms &&
		in_a tc class change dev v0 parent 10: classid 10:2 pss rate 0 share 30% &&
		in_a tc class change dev v0 parent 10: classid 10:2 pss rate 2mbit share 0% &&
		in_a tc qdisc change dev v0 parent 1:1 handle 10: pss sat paper dscp EF=$((1 + changes % 3)) class 3 level $((2 + changes % 2)) &&
		in_a tc qdisc change dev v0 parent 1:1 handle 10: pss sat exact class 3 level 2 || fault "pss changes" "number $changes"
	changes=$((changes + 1))
done
all_arrived pss
if [ $changes -ge 3 ]; then pass "pss: while it changed"; else fault "pss: while it changed" "$changes times"; fi
echo "# pss: $((5 * changes)) changes"
clear

under pds classes 3 limit 100000 dscp EF=1,AF11=2 class 1 limit 10000 delay 8 class 2 limit 10000 delay 4 class 3 limit 10000
load
changes=0
while busy; do
	in_a tc qdisc change dev v0 parent 1:1 handle 10: pds limit $((100000 - changes)) class 1 delay $((1 + changes)) loss $((1 + changes)) &&
		in_a tc qdisc change dev v0 parent 1:1 handle 10: pds early peld qmin 99000 &&
		in_a tc qdisc change dev v0 parent 1:1 handle 10: pds early off || fault "pds changes" "number $changes"
	changes=$((changes + 1))
done
all_arrived pds
if [ $changes -ge 3 ]; then pass "pds: while it changed"; else fault "pds: while it changed" "$changes times"; fi
echo "# pds: $((3 * changes)) changes"
clear

for kind in pf codes; do
	timeout=
	[ $kind = codes ] && timeout="timeout 0"
	under $kind classes 3 dscp EF=1,AF11=2 class 1 limit 10000 $timeout class 2 limit 10000 $timeout class 3 limit 10000 $timeout
	load
	changes=0
	while busy; do
		for class in 1 2 3; do
			in_a tc class change dev v0 parent 10: classid 10:$class $kind rate $((changes % 3))mbit weight $((1 + changes)) || fault "$kind changes" "number $changes"
		done
		in_a tc qdisc change dev v0 parent 1:1 handle 10: $kind tc $((1 + changes % 5))s || fault "$kind changes" "number $changes"
		changes=$((changes + 1))
	done
	for class in 1 2 3; do in_a tc class change dev v0 parent 10: classid 10:$class $kind rate 1mbit; done
	all_arrived $kind
	if [ $changes -ge 3 ]; then pass "$kind: while it changed"; else fault "$kind: while it changed" "$changes times"; fi
	echo "# $kind: $((4 * changes)) changes"
	clear
done

# what is remembered: pds counts its arrivals and losses over its history
in_a tc qdisc add dev v0 root handle 10: pds classes 2 default 1 limit 10 history infinite class 1 rate 0
in_a traffic send 10.0.0.2 5003 0 25 100 0
same "received and lost" "$(stat received 10:1) $(stat lost 10:1)" "25p 15p"
in_a tc qdisc change dev v0 root handle 10: pds limit 20 class 1 delay 3 loss 2
same "still known after a change" "$(stat received 10:1) $(stat lost 10:1) $(backlog 10:)" "25p 15p 10"
in_a traffic send 10.0.0.2 5003 0 25 100 0
same "and counted on" "$(stat received 10:1) $(stat lost 10:1) $(backlog 10:)" "50p 30p 20"
in_a tc qdisc change dev v0 root handle 10: pds limit 5
same "a smaller limit drops nothing by itself" "$(backlog 10:)" 20
in_a traffic send 10.0.0.2 5003 0 1 100 0
same "but with the next packet" "$(stat lost 10:1) $(backlog 10:)" "46p 5"
clear
unwire
