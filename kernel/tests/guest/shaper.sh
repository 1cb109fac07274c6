# SPDX-License-Identifier: GPL-2.0-only
# shaper.sh - `bandwidth`: the rate at which packets leave, the delay of urgent ones, and changes while packets wait.
#
# The guest's clock counts instructions, so times are those of this kernel on a processor of a fixed speed.
. /guest/checks.sh
wire

# the rate of 10,000 packets; 42 bytes are headers of Ethernet, IP and UDP
kept() { # kept BANDWIDTH BITS BYTES: when they have left
	waits "$1: drains" empty 10:
	end_count
	awk -v size=$(($3 + 42)) -v bits="$2" '
		NF == 7 { rate = ($2 - 1) * size * 8e9 / ($6 - $5); error = rate / bits - 1
			printf "# %d packets at %.0f bit/s instead of %d\n", $2, rate, bits
			exit !($2 == 10000 && error < 0.001 && error > -0.001) }' /tmp/count >/tmp/rate &&
		pass "$1 is kept within 0.1 %" || fault "$1 is kept within 0.1 %" "$(cat /tmp/rate)"
	cat /tmp/rate
	clear
}
while read -r bandwidth bits bytes; do
	holds "$bandwidth" tc qdisc add dev v0 root handle 10: pss classes 1 bandwidth "$bandwidth" class 1 limit 20000
	begin_measure 5003
	traffic send 10.0.0.2 5003 0 10000 "$bytes" 0
	kept "$bandwidth" "$bits" "$bytes"
done <<END
1mbit 1000000 60
20mbit 20000000 1472
END

# This guest cannot send and receive much more than 500 Mbit/s. So one packet on a very slow link first holds up the others until all
# are there.
holds "500mbit: slow at first" tc qdisc add dev v0 root handle 10: pss classes 1 bandwidth 1kbit class 1 limit 20000
begin_measure 5003
traffic send 10.0.0.2 5002 0 1 1000 0
traffic send 10.0.0.2 5003 0 10000 1472 0
same "500mbit: all wait" "$(backlog 10:)" 10000
holds "500mbit" tc qdisc change dev v0 root handle 10: pss bandwidth 500mbit
kept 500mbit 500000000 1472

# the delay of voice below HTB, and with a shaper of its own: at most one packet more, 1514 bytes at 20 Mbit/s
voice() { # sets `p99`: of a voice stream, while two classes have more than the link carries
	begin_measure 5001 5002 5003
	greedy 5001 0xb8 200 1000
	greedy 5002 0x28 1472 500
	greedy 5003 0 1472 500
	sleep 4
	quiet
	drained "$1: drains" 10:
	end_count
	p99=$(awk '$1 == 5001 { print $7 }' /tmp/count)
	echo "# $1: 99 % of voice within $p99 ns"
}
classes="classes 3 dscp EF=1,AF11=2 class 1 limit 100 class 2 low_level 4 rate 8mbit limit 100 class 3 limit 100"
tc qdisc add dev v0 root handle 1: htb default 1
tc class add dev v0 parent 1: classid 1:1 htb rate 20mbit
holds "below htb" tc qdisc add dev v0 parent 1:1 handle 10: pss link 20mbit $classes
voice "below htb"
htb=$p99
clear
holds "by itself" tc qdisc add dev v0 root handle 10: pss bandwidth 20mbit $classes
voice "by itself"
if [ "$p99" -gt 0 ] && [ "$p99" -le $((htb + 605600)) ]; then pass "voice waits no longer than below htb"; else fault "voice waits no longer than below htb" "$p99 ns, and $htb"; fi
clear

# a bandwidth that changes 20 times a second: a cosine, and what a drive through an LTE network recorded
for trace in cosine lte; do
	rm -f /tmp/sent
	tc qdisc add dev v0 root handle 10: pss bandwidth 10mbit classes 3 dscp EF=1,AF11=2 class 1 limit 30000 \
		class 2 low_level 4 share 40% limit 30000 class 3 limit 30000 || fault "$trace" "no qdisc"
	begin_count 5001 5002 5003
	greedy 5001 0xb8 200 5000
	greedy 5002 0x28 1000 2000
	greedy 5003 0 1000 2000
	while read -r rate; do
		tc qdisc change dev v0 root handle 10: pss bandwidth "$rate" || fault "$trace" "$rate"
		sleep 0.05
	done </guest/$trace
	quiet
	tc qdisc change dev v0 root handle 10: pss bandwidth 100mbit
	drained "$trace: drains" 10:
	end_count
	same "$trace: each packet arrived" "$arrived_sum" "$(awk '{ n += $1 } END { print n }' /tmp/sent)"
	same "$trace: none was dropped" "$(fields qdisc 10: | cut -d' ' -f3)" 0
	echo "# $trace: $arrived packets"
	clear
done

# A packet on a slow link is not waited for when the link becomes fast. It would take 83 s, much longer than `drained` waits.
tc qdisc add dev v0 root handle 10: pss classes 1 bandwidth 100bit
begin_count 5003
offer 3 2 1000
same "one is on the link, one waits" "$(backlog 10:)" 1
tc qdisc change dev v0 root handle 10: pss bandwidth 1mbit
drained "the second leaves as soon as the link is fast" 10:
sleep 0.1 # it also leaves the link
tc qdisc change dev v0 root handle 10: pss bandwidth 100bit
offer 3 2 1000
same "again" "$(backlog 10:)" 1
tc qdisc change dev v0 root handle 10: pss bandwidth unlimited
drained "or without a shaper" 10:
tc qdisc change dev v0 root handle 10: pss bandwidth 1mbit
offer 3 1 1000
drained "nor is it waited for when there is a shaper again" 10:
end_count
same "all of them arrive" "$arrived" 5
clear

# one message, all or nothing
holds "both" tc qdisc add dev v0 root handle 10: pss bandwidth 20mbit classes 2 class 1 low_level 4 rate 8mbit
says "link is the bandwidth" "link 20Mbit bandwidth 20Mbit" tc qdisc show dev v0
refused "a reservation above the bandwidth" "rate" tc qdisc change dev v0 root handle 10: pss bandwidth 30mbit class 1 rate 40mbit
says "nothing of it applies" "link 20Mbit bandwidth 20Mbit" tc qdisc show dev v0
says "nor of the class" "rate 8Mbit" tc class show dev v0 classid 10:1
refused "another link" "link must be the bandwidth: leave it out" tc qdisc change dev v0 root handle 10: pss link 10mbit
holds "all at once" tc qdisc change dev v0 root handle 10: pss bandwidth 10mbit overhead 18 mpu 64 atm class 1 rate 2mbit
says "all of it" "link 10Mbit bandwidth 10Mbit overhead 18 mpu 64 atm" tc qdisc show dev v0
show tc -d -j qdisc show dev v0
holds "raw" tc qdisc change dev v0 root handle 10: pss raw noatm mpu 0
clear

# a preset, and what follows it
holds "a preset" tc qdisc add dev v0 root handle 10: pss preset voice bandwidth 18mbit
says "three classes and a map" "classes 3 link 18Mbit bandwidth 18Mbit default 3 dscp AF11=2" tc qdisc show dev v0
says "the second has a share" "level 1 low_level 3 rate 0bit share 40%" tc class show dev v0 classid 10:2
clear
holds "changed at once" tc qdisc add dev v0 root handle 10: pss bandwidth 18mbit preset voice dscp EF=3 class 2 share 30%
says "the share" "share 30%" tc class show dev v0 classid 10:2
clear
refused "a preset that is none" "preset takes voice, not \"games\"" tc qdisc add dev v0 root pss preset games bandwidth 18mbit

# a channel's rate that is the link's again
tc qdisc add dev v0 root handle 10: lw_pf classes 1 link 5mbit class 1 rate 2mbit
says "a rate" "rate 2Mbit" tc class show dev v0 classid 10:1
holds "no rate" tc class change dev v0 parent 10: classid 10:1 lw_pf rate unset
same "is not shown" "$(tc class show dev v0 classid 10:1 | grep -c 'rate ')" 0
clear

# lengths on the link, as the class counts them: 100 bytes of data are 128 of IP; limit_bytes shows them
framed() { # framed WHAT BYTES WORD...: so many packets of so many bytes fit
	what=$1 bytes=$2
	shift 2
	tc qdisc add dev v0 root handle 10: lw_pf classes 1 bandwidth 1mbit "$@" class 1 rate 0 limit_bytes $((10 * bytes)) || fault "$what" "no qdisc"
	offer 3 20 100
	same "$what" "$(backlog 10:)" 10
	tc qdisc change dev v0 root handle 10: lw_pf class 1 limit_bytes $((12 * bytes - 1))
	offer 3 20 100
	same "$what, to the byte" "$(backlog 10:)" 11
	clear
}
framed "the kernel's length" 142
framed "overhead 0 is IP's" 128 overhead 0
framed "overhead 44" 172 overhead 44
framed "a negative overhead" 118 overhead -10
framed "mpu" 200 mpu 200
framed "cells of ATM" 212 overhead 44 atm
framed "PTM" 130 overhead 0 ptm

# below HTB
tc qdisc add dev v0 root handle 1: htb default 1
tc class add dev v0 parent 1: classid 1:1 htb rate 10mbit
says "a link that is not htb's rate" "link is not the rate of the htb class above" \
	tc qdisc add dev v0 parent 1:1 handle 10: pss classes 1 link 32mbit
same "and none if it is" "$(tc qdisc change dev v0 parent 1:1 handle 10: pss link 10mbit 2>&1)" ""
same "nor with a smaller bandwidth" "$(tc qdisc change dev v0 parent 1:1 handle 10: pss bandwidth 9mbit 2>&1)" ""
clear
unwire
