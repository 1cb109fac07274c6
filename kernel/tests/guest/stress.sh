# SPDX-License-Identifier: GPL-2.0-only
# stress.sh - on several processors at once: senders with super-packets on each, dumps, links that go up and down, and messages that
# change and replace the qdisc below many parents.
#
# Then the same without what loses packets or counters unseen (links that go down, qdiscs that are replaced), and every packet must be
# found: as received, or as dropped. In the end nothing waits in any counter, and no memory is missing.
. /guest/checks.sh
wire 4
steady
messages=100 parents="htb mq pss_mq"
if grep -q checks=full /proc/cmdline; then
	messages=1000
	parents="root pss_mq htb hfsc drr qfq ets prio multiq mq mq_htb mqprio tbf netem red sfb cbs"
fi
[ -e /guest/parents ] && parents=$(cat /guest/parents)
[ -e /guest/stress_messages ] && messages=$(cat /guest/stress_messages)
kinds=$(tr '\n' ' ' </guest/kinds)
cpus=$(grep -c ^processor /proc/cpuinfo)
same "there are several processors" "$([ "$cpus" -gt 1 ] && echo several)" several
echo 60 >/proc/sys/kernel/watchdog_thresh 2>/dev/null # the host may be busy with other things

# a tree with a class `at` for the qdisc under test; some have siblings with qdiscs of the module, too
tree() { # tree PARENT KIND
	add="tc qdisc add dev v0" at=1:1 zeros="0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0" link="classes 3 link 50mbit dscp EF=1,AF11=2"
	case $1 in
	root | pss_mq) at=root ;;
	htb) $add root handle 1: htb default 1 && tc class add dev v0 parent 1: classid 1:1 htb rate 50mbit quantum 3000 ;;
	hfsc) $add root handle 1: hfsc default 1 && tc class add dev v0 parent 1: classid 1:1 hfsc sc rate 50mbit ul rate 50mbit ;;
	drr) $add root handle 1: drr && tc class add dev v0 parent 1: classid 1:1 drr quantum 3000 ;;
	qfq) $add root handle 1: qfq && tc class add dev v0 parent 1: classid 1:1 qfq weight 1 maxpkt 2048 ;;
	ets) $add root handle 1: ets bands 3 strict 1 quanta 3000 1500 priomap $(echo $zeros | tr 0 1) ; at=1:2 ;;
	prio) $add root handle 1: prio bands 2 priomap $zeros ;;
	multiq) $add root handle 1: multiq ;;
	mq) $add root handle 1: mq ;;
	mq_htb) $add root handle 1: mq ;;
	mqprio) $add root handle 1: mqprio num_tc 2 map $zeros queues 2@0 2@2 hw 0 ;;
	tbf) $add root handle 1: tbf rate 50mbit burst 100k limit 10m ;;
	netem) $add root handle 1: netem delay 1ms limit 1000 ;;
	red) $add root handle 1: red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02 bandwidth 50mbit ;;
	sfb) $add root handle 1: sfb ;;
	cbs) $add root handle 1: cbs idleslope 50000 sendslope -9950000 hicredit 153 locredit -1389 offload 0 ;;
	esac || return
	case $1 in
	drr | qfq) tc filter add dev v0 parent 1: matchall classid 1:1 ;;
	mq | mqprio)
		for queue in 2 3 4; do $add parent 1:$queue handle 2$queue: "$2" $link || return; done ;;
	mq_htb)
		for queue in 1 2 3 4; do
			$add parent 1:$queue handle 3$queue: htb default 1 &&
				tc class add dev v0 parent 3$queue: classid 3$queue:1 htb rate 10mbit quantum 3000 || return
			[ $queue = 1 ] || $add parent 3$queue:1 handle 2$queue: "$2" $link || return
		done
		at=31:1 ;;
	esac
	case $at in
	root) $add root handle 1: "$2" $link ;;
	*) $add parent $at handle 10: "$2" $link ;;
	esac
}

begin_stress() {
	running=
	cpu=0
	rm -f /tmp/send*
	while [ $cpu -lt "$cpus" ]; do
		stress send 10.0.0.2 $((round * 8 + cpu)) $cpu >/tmp/send$cpu &
		running="$running $!"
		cpu=$((cpu + 1))
	done
	stress dump v0 >/tmp/dump &
	running="$running $!"
}
end_stress() { # sets what each part did
	kill $running
	wait $running
	sent=$(cat /tmp/send* | awk '{ sum += $2 } END { print sum }')
	dumps=$(cut -d' ' -f2 /tmp/dump)
}
begin_flaps() {
	stress flap v0 40 >/tmp/flap0 &
	flapping=$!
	ip netns exec b stress flap v1 30 >/tmp/flap1 &
	flapping="$flapping $!"
}
end_flaps() {
	kill $flapping
	wait $flapping
	flaps=$(cat /tmp/flap0 /tmp/flap1 | awk '{ sum += $2 } END { print sum }')
	neighbours
}
neighbours() { # which are lost when a device goes down
	ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
	in_b ip neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev v1 nud permanent
}
received() { in_b cat /proc/net/dev | awk -F'[: ]+' '$2 == "v1" { print $4 }'; }
leaves() { # of all qdiscs of the module: sent dropped
	tc -s qdisc show dev v0 | awk '
		NR == FNR { kind[$1]; kind[$1 "_mq"]; next }
		$1 == "qdisc" { mine = $2 in kind }
		mine && $1 == "Sent" { sent += $4; sub(/,/, "", $7); dropped += $7 }
		END { print sent + 0, dropped + 0 }' /guest/kinds -
}

# multiq does not count the bytes that wait, so reports from below make its count wrong (seen on 6.1, 6.12)
still() { ! tc -s qdisc show dev v0 | awk '$1 == "qdisc" { kind = $2 } $1 == "backlog" && (kind != "multiq" || $3 != "0p")' | grep -q 'backlog.* [1-9-]'; }

plant() { # plant PARENT KIND
	if tree "$1" "$2" >/tmp/tree 2>&1; then return 0; fi
	fault "$2 below $1" "$(cat /tmp/tree)"
	clear
	return 1
}
rest=$kinds
round=0
for parent in $parents; do
	round=$((round + 1))
	begun=$(cut -d. -f1 /proc/uptime)
	[ -n "$rest" ] || rest=$kinds
	if [ $parent = pss_mq ]; then kind=pss_mq; else kind=${rest%% *} rest=${rest#* }; fi

	plant $parent $kind || continue
	where="-p $at"
	[ $at = root ] && where=
	begin_stress
	begin_flaps
	fuzz $where v0 10.0.0.2 $round $messages $kind $kinds >/tmp/fuzz 2>&1
	end_flaps
	end_stress
	if [ "${sent:-0}" -gt 0 ] && [ "${dumps:-0}" -gt 0 ] && [ "${flaps:-0}" -gt 0 ] && grep -q '^sent ' /tmp/fuzz; then
		pass "$kind below $parent: $sent packets, $dumps dumps, $flaps flaps, $(tail -n 1 /tmp/fuzz)"
	else
		fault "$kind below $parent" "sent $sent, dumps $dumps, flaps $flaps, $(cat /tmp/fuzz)"
	fi
	clear

	plant $parent $kind || continue
	before=$(received)
	begin_stress
	fuzz -k -o $where v0 10.0.0.2 $((round + 1000)) $messages $kind >/tmp/fuzz 2>&1
	end_stress
	waits "below $parent nothing is left waiting" still && pass "below $parent nothing is left waiting" || tc -s qdisc show dev v0
	offered=$((sent + $(awk '$1 == "sent" { print $14 }' /tmp/fuzz)))
	set -- $(leaves)
	echo "# $kind below $parent: $offered packets offered, $1 sent, $2 dropped, $dumps dumps, $(grep -c . /tmp/fuzz) lines, $(tail -n 1 /tmp/fuzz)"
	case $parent in
	multiq) ;;                      # only one of its queues leads to us
	netem | red | sfb)
		same "below $parent all that $kind sent arrived" "$(($(received) - before))" "$1" ;;
	*)
		same "below $parent all that $kind sent arrived" "$(($(received) - before))" "$1"
		same "below $parent all that $kind got was sent or dropped" "$(($1 + $2))" $offered ;;
	esac
	clear
	echo "# $parent took $(($(cut -d. -f1 /proc/uptime) - begun)) s"
done

# memory: of qdiscs with many classes, and of packets that are dropped to make room
available_kb() { awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo; }
use() { # use TIMES
	times=$1
	while [ $times -gt 0 ]; do
		tc qdisc add dev v0 root handle 1: lw_pf classes 4096 && tc qdisc del dev v0 root || fault "a large qdisc" "$times"
		times=$((times - 1))
	done
	tc qdisc add dev v0 root handle 10: pds classes 1 limit 10 class 1 rate 0 limit 20
	traffic send 10.0.0.2 5003 0 $(($1 * 1000)) 1000 0
	clear
}
use 2
before=$(available_kb)
use 8
sleep 1
missing=$((before - $(available_kb)))
if [ $missing -lt 4000 ]; then pass "no memory is missing ($missing kB)"; else fault "no memory is missing" "$missing kB"; fi
tc qdisc add dev v0 root handle 1: pss classes 3 link 20mbit
neighbours
holds "packets still pass" ping -c 1 10.0.0.2
clear
unwire
unsteady
if [ -e /sys/kernel/debug/kmemleak ] || { mount -t debugfs debug /sys/kernel/debug && [ -e /sys/kernel/debug/kmemleak ]; } 2>/dev/null; then
	echo scan >/sys/kernel/debug/kmemleak
	sleep 6                         # younger objects are not reported
	echo scan >/sys/kernel/debug/kmemleak
	same "no memory is unreachable" "$(cat /sys/kernel/debug/kmemleak)" ""
fi
