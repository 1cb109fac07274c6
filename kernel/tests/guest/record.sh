# SPDX-License-Identifier: GPL-2.0-only
# record.sh - the module's tracepoints record runs of policies, which the host replays in the core.
. /guest/checks.sh
wire
mount -t tracefs tracefs /sys/kernel/tracing
cd /sys/kernel/tracing
echo 24000 >buffer_size_kb
echo nocontext-info >trace_options
echo 1 >events/linkweir/enable

record() { # record NAME: what has happened since the last one
	holds "$1: no event was lost" grep -q '^overrun: 0$' per_cpu/cpu0/stats
	recorded="$recorded $1 "
	gzip -c trace | base64 -w 1000 | sed "s/^/trace $1 /"
	echo >trace
}

parent() { # parent htb|tbf RATE
	case $1 in
	htb)
		tc qdisc add dev v0 root handle 1: htb default 1
		tc class add dev v0 parent 1: classid 1:1 htb rate "$2" ;;
	tbf) tc qdisc add dev v0 root handle 1: tbf rate "$2" burst 4k limit 10m ;;
	esac
}

flows() { # three classes, together above any rate used here; packets of many lengths
	traffic send 10.0.0.2 5001 0xb8 0 200 900 >/dev/null &
	one=$!
	traffic send 10.0.0.2 5002 0x28 0 1000 700 >/dev/null &
	two=$!
	traffic send 10.0.0.2 5003 0x02 0 1400 1100 >/dev/null &
	three=$!
	traffic super 10.0.0.2 5003 0 2 9000 700
}
quiet() { kill $one $two $three; wait $one $two $three; }
beat() { sleep 0.2; }

dscp="classes 3 dscp EF=1,AF11=2"

parent htb 8mbit
holds "pss" tc qdisc add dev v0 parent 1:1 handle 10: pss $dscp link 8mbit class 1 limit 50 class 2 limit 60 low_level 4 rate 4mbit memory 20ms class 3 limit 70
flows
beat
tc class change dev v0 parent 1: classid 1:1 htb rate 5mbit
tc qdisc change dev v0 parent 1:1 handle 10: pss link 5mbit
beat
holds "pss change" tc qdisc change dev v0 parent 1:1 handle 10: pss sat paper class 2 rate 0 share 30%
beat
holds "pss link" tc qdisc change dev v0 parent 1:1 handle 10: pss link 12mbit
beat
quiet
clear
record pss

for history in decayed infinite "ring k 200" "decayed early peld qmin 10"; do
	parent tbf 6mbit
	holds "pds $history" tc qdisc add dev v0 parent 1:1 handle 10: pds $dscp limit 60 history $history class 1 delay 8 loss 8 class 2 delay 4 loss 4
	flows
	beat
	holds "pds change" tc qdisc change dev v0 parent 1:1 handle 10: pds limit 40 class 1 delay 2 loss 2
	beat
	quiet
	clear
done
record pds

parent htb 6mbit
holds "lw_codes" tc qdisc add dev v0 parent 1:1 handle 10: lw_codes $dscp class 1 rate 2mbit timeout 15ms limit 30 class 2 rate 3mbit timeout 30ms limit 15 class 3 timeout 0 limit 80
flows
beat
for rate in 0 5mbit 1mbit; do
	holds "lw_codes rate $rate" tc class change dev v0 parent 10: classid 10:1 lw_codes rate $rate timeout 25ms
	beat
done
holds "lw_codes blocked" tc qdisc change dev v0 parent 1:1 handle 10: lw_codes class 1 rate 0 class 2 rate 0 class 3 rate 0
beat
holds "lw_codes open" tc qdisc change dev v0 parent 1:1 handle 10: lw_codes class 1 rate 1mbit class 2 rate 2mbit class 3 rate 1mbit weight 3
beat
quiet
clear
record lw_codes

for unit in bytes airtime packets; do
	parent htb 6mbit
	holds "lw_pf $unit" tc qdisc add dev v0 parent 1:1 handle 10: lw_pf $dscp unit $unit tc 100ms class 1 rate 2mbit limit 50 class 2 rate 3mbit limit 50 class 3 limit_bytes 40kb
	flows
	beat
	tc class change dev v0 parent 10: classid 10:2 lw_pf rate 1mbit weight 2
	beat
	ip link set v0 down
	ip link set v0 up
	ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
	beat
	quiet
	clear
done
record lw_pf

for kind in mlwdf exp_rule exp_pf; do
	parent htb 6mbit
	holds "$kind" tc qdisc add dev v0 parent 1:1 handle 10: $kind $dscp class 1 target 20ms rate 2mbit limit 50 class 2 target 50ms delta 1% rate 3mbit limit 30 class 3 limit 60
	flows
	beat
	tc class change dev v0 parent 10: classid 10:2 $kind rate 1mbit target 10ms
	beat
	quiet
	clear
	record $kind
done
# the rest of the kinds, with their own defaults
for kind in $(cat /guest/kinds); do
	case $recorded in *" $kind "*) continue ;; esac
	parent htb 6mbit
	holds "$kind" tc qdisc add dev v0 parent 1:1 handle 10: $kind $dscp link 6mbit class 1 limit 50 class 2 limit 30 class 3 limit 60
	flows
	beat
	holds "$kind link" tc qdisc change dev v0 parent 1:1 handle 10: $kind link 3mbit
	beat
	quiet
	clear
	record $kind
done
echo 0 >events/linkweir/enable

# drop monitors see a queueing-discipline reason for each drop that is counted; newer kernels tell which
echo >trace
typed=$(ls -d events/qdisc/qdisc_drop 2>/dev/null)
for event in events/skb/kfree_skb $typed; do echo 1 >$event/enable; done
tc qdisc add dev v0 root handle 10: lw_codes classes 1 class 1 rate 0 limit 10 timeout 100ms
traffic send 10.0.0.2 5003 0 12 500 0
sleep 0.2
traffic send 10.0.0.2 5003 0 1 500 0
tc class change dev v0 parent 10: classid 10:1 lw_codes rate 10mbit
drained "packets go by limit and by age" 10:
for event in events/skb/kfree_skb $typed; do echo 0 >$event/enable; done
same "at the limit, to make room and when leaving" "$(stat dropped_limit 10:1) $(stat dropped_expired 10:1) $(stat dropped_leaving 10:1)" "2p 1p 9p"
same "each is a drop of a queue" "$(grep -c 'kfree_skb: .*reason: QDISC_DROP' trace)" 12
[ -z "$typed" ] || same "the reasons of a queue" "$(sed -n 's/.*qdisc_drop: .*kind=lw_codes .*reason=//p' trace | sort | uniq -c | xargs)" \
	"2 BAND_LIMIT 10 CONGESTED"
clear

# packets above a lower limit are freed at once, although nothing is sent any more
tc qdisc add dev v0 root handle 10: lw_codes classes 1 class 1 rate 0 limit 100 timeout 10s
traffic send 10.0.0.2 5003 0 100 500 0
echo >trace
echo 1 >events/skb/kfree_skb/enable
tc class change dev v0 parent 10: classid 10:1 lw_codes limit 10
tc qdisc del dev v0 root
echo 0 >events/skb/kfree_skb/enable
same "drops above a lower limit" "$(grep -c 'kfree_skb: .*reason: QDISC_DROP' trace)" 90
unwire
