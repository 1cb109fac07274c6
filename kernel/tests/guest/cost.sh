# SPDX-License-Identifier: GPL-2.0-only
# cost.sh - instructions per packet, compared with the kernel's own qdiscs. The guest's clock counts instructions.
#
# cost NAME IN-TURN LOADED IN-TURN LOADED: one packet in an empty qdisc, and with 64 waiting; first for packets with a known
# flow hash (of local sockets, or from devices that compute it), then for packets without one, whose headers must be parsed.
. /guest/checks.sh
ip link add d0 type dummy
ip link set d0 up
ip link add d4 numtxqueues 4 type dummy # with four transmission queues
ip link set d4 up
device=d0

measure() { # measure NAME CLASSES PRIORITY KIND ...: PRIORITY 0 or the handle's major; sets `costs`
	name=$1 flows=$2 priority=$3
	shift 3
	tc qdisc add dev $device root handle 1: "$@" || fault "$name" "is not made"
	if [ "$1" = drr ]; then for class in 1 2 3; do tc class add dev $device parent 1: classid 1:$class drr; done; fi
	costs=
	for hashed in 1 0; do
		dmesg -c >/dev/null
		modprobe qdisc_cost device=$device classes="$flows" waiting=64 priority="$priority" hashed=$hashed 2>/dev/null
		costs="$costs $(dmesg | sed -n 's/.*cost .* in turn \(.*\) loaded \(.*\)/\1 \2/p' | tail -1)"
	done
	tc qdisc del dev $device root
	same "$name: four costs, none of them 0" "$(echo "$costs" | awk '{ for (i = 1; i <= NF; i++) n += $i > 0; print NF, n }')" "4 4"
	echo "cost $name$costs"
}

below() { # below WHAT COLUMN FACTOR COSTS: the cost in this column is at most FACTOR times that of COSTS
	if echo "$costs $4" | awk -v column="$2" -v factor="$3" '{ exit !($column > 0 && $column <= factor * $(column + 4)) }'; then
		pass "$1"
	else
		fault "$1" "$costs, compared with$4"
	fi
}

bounded() { # bounded NAME: without a hash, no more than fq_codel; never more than 0.3 of cake
	below "$1 in turn" 3 1 "$fq_codel"
	below "$1 loaded" 4 1 "$fq_codel"
	for column in 1 2 3 4; do below "$1 and cake, column $column" $column 0.3 "$cake"; done
}

measure pfifo 3 0 pfifo limit 1000
measure prio 3 0x10000 prio
measure drr 3 0x10000 drr
measure cake 3 0 cake unlimited
cake=$costs
measure fq_codel 3 0 fq_codel
fq_codel=$costs
classes="classes 3 dscp EF=1,AF11=2,CS0=3"
measure pss 3 0 pss $classes link 1gbit class 2 low_level 4 rate 400mbit
bounded pss
below "pss loaded, with a hash" 2 1 "$fq_codel"
pss=$costs
# a shaper of its own, so fast that no packet waits for it: the timer is the kernel's
measure pss-bandwidth 3 0 pss $classes bandwidth 1tbit class 2 low_level 4 rate 400mbit
for column in 1 2 3 4; do below "pss with a bandwidth, column $column" $column 1.15 "$pss"; done
measure pds 3 0 pds $classes limit 1000
bounded pds
measure pds-ring 3 0 pds $classes limit 1000 history ring
bounded pds-ring
measure lw_pf 3 0 lw_pf $classes
bounded lw_pf
measure lw_codes 3 0 lw_codes $classes
bounded lw_codes
eight="classes 8 dscp EF=1,AF11=2,CS0=3,AF21=4,AF31=5,AF41=6,CS1=7,CS2=8"
measure pss-8 8 0 pss $eight link 1gbit class 2 low_level 9 rate 400mbit
bounded pss-8
measure pds-8 8 0 pds $eight limit 1000
bounded pds-8
measure lw_pf-8 8 0 lw_pf $eight
bounded lw_pf-8
measure lw_codes-8 8 0 lw_codes $eight
bounded lw_codes-8

# as root of a device with four transmission queues: cost, without the locks, and how often a lock is taken for a packet
device=d4
measure pss-on-queues 3 0 pss $classes link 1gbit class 2 low_level 4 rate 400mbit
pss=$costs
measure pss_mq 3 0 pss_mq $classes link 1gbit class 2 low_level 4 rate 400mbit
for column in 1 2 3 4; do below "pss_mq, column $column" $column 1.5 "$pss"; done
measure pss_mq-bandwidth 3 0 pss_mq $classes bandwidth 1tbit class 2 low_level 4 rate 400mbit
ip link del d0
ip link del d4

wire 4
mount -t tracefs tracefs /sys/kernel/tracing
locks() { # locks NAME: counts the spin locks that are taken between sending and the driver, by the functions that take them
	cd /sys/kernel/tracing
	echo '_raw_spin_lock' >set_ftrace_filter
	echo 4000 >buffer_size_kb
	echo function >current_tracer
	begin_count 5001 5002 5003
	echo >trace
	for class in 1 2 3; do offer $class 100 100; done
	echo 0 >tracing_on
	awk '/_raw_spin_lock <-/ { sub(/.*<-/, ""); sub(/\..*/, ""); count[$1]++ } END { for (name in count) if (name ~ /linkweir|dev_queue_xmit|direct_xmit|net_tx_action/) printf "%s %.2f, ", name, count[name] / 300 }' trace >/tmp/locks
	echo nop >current_tracer
	echo 1 >tracing_on
	end_count
	same "$1: the packets arrived" "$arrived_sum" 300
	echo "# locks for each packet, $1: $(cat /tmp/locks)"
	cd /
	clear
}
if grep -qw function /sys/kernel/tracing/available_tracers; then
	tc qdisc add dev v0 root handle 1: pss $classes link 1gbit
	locks "pss on four queues"
	tc qdisc add dev v0 root handle 1: pss_mq $classes link 1gbit
	locks "pss_mq on four queues"
	tc qdisc add dev v0 root handle 1: pss_mq $classes bandwidth 1gbit
	locks "pss_mq on four queues, with a bandwidth"
	tc qdisc add dev v0 root handle 1: mq
	for queue in 1 2 3 4; do tc qdisc add dev v0 parent 1:$queue pss $classes link 1gbit; done
	locks "mq with a pss for each queue"
fi
unwire
