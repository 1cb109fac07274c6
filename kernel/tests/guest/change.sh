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
same "a smaller one lets what waits wait, and refuses more" "$(backlog 10:) $(stat dropped_limit 10:1)" "20 31p"
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
