# SPDX-License-Identifier: GPL-2.0-only
# carrier.sh - a link that loses its carrier, or goes down: its packets are dropped, and what the policies know stays.
#
# The link is the clock here: so many bits at its bandwidth take so much time. A class with a reserved rate that was owed service then
# has received what it was owed, its part of all bits sent since, and what it is ahead now.
. /guest/checks.sh
wire

owed=1600000    # bits: 2 Mbit/s for 0.8 s
pss="pss classes 3 bandwidth 4mbit dscp EF=1,AF11=2 class 1 limit 50
	class 2 low_level 4 rate 2mbit lr $owed lm 2000000 limit 50 class 3 limit 50"

classes() { # of all three classes the bytes sent, and the credit of the second in bits
	tc -s class show dev v0 | awk '
		$1 == "class" { mine = $2 == "pss"; class += mine }
		mine && $1 == "Sent" { sent = sent " " $2 }
		mine && class == 2 { for (i = 1; i < NF; i++) if ($i == "credit") credit = $(i + 1) }
		END { f = credit ~ /Gbit/ ? 1e9 : credit ~ /Mbit/ ? 1e6 : credit ~ /Kbit/ ? 1e3 : 1; sub(/[GMK]?bit/, "", credit); printf "%s %.0f", sent, credit * f }'
}
credit() { set -- $(classes); echo "$4"; }
greedy() { # greedy PORT TOS: more than the link carries
	traffic send 10.0.0.2 "$1" "$2" 0 1000 700 >/dev/null &
	senders="$senders $!"
}
starved() { [ "$(credit)" = 0 ]; }
carrier() { [ "$(cat /sys/class/net/v0/carrier)" = "$1" ]; }
stopped() { tc qdisc show dev v0 >/dev/null && [ "$(stat dropped_reset 10:2)" != 0p ]; }

lose() { # lose carrier|down
	case $1 in
	carrier) ip -n b link set v1 down ;;
	down) ip link set v0 down ;;
	esac
	waits "$case: the kernel stops the device" stopped
}
return_() {
	case $1 in
	carrier)
		ip -n b link set v1 up
		waits "$case: a carrier" carrier 1
		sleep 1.1 ;;                    # the kernel may start the device a second later
	down)
		ip link set v0 up ;;
	esac
	ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
	ip -n b neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev v1 nud permanent
}

outage() { # outage carrier|down SECONDS HOW-THE-QDISC-IS-ADDED...
	how=$1 seconds=$2
	shift 2
	case="$how away for $seconds s, $*"
	holds "$case" tc qdisc add dev v0 "$@" handle 10: $pss
	greedy 5001 0xb8
	greedy 5002 0x28
	greedy 5003 0
	# voice takes all of the link for longer than AF's memory of 0.8 s
	waits "$case: AF is owed all that its memory holds" starved
	same "$case: no packet was lost so far by a reset" "$(stat dropped_reset 10:2)" 0p
	lose "$how"
	same "$case: nothing waits" "$(fields qdisc 10: | cut -d' ' -f4-5)" "0 0"
	same "$case: each drop has a reason" "$(reasons)" "$(fields qdisc 10: | cut -d' ' -f3)"
	quiet
	same "$case: AF is owed what it was" "$(credit)" 0
	sleep "$seconds"
	same "$case: and no more" "$(credit)" 0
	return_ "$how"
	set -- $(classes)
	# now AF and best effort, AF first
	greedy 5002 0x28
	greedy 5003 0
	sleep 2
	set -- "$@" $(classes)
	quiet
	# one packet, 1042 bytes, is 8336 bits; 1 % of what is owed is 16000
	repaid=$(echo "$@" | awk -v lr=$owed '{ af = 8 * ($6 - $2); all = 8 * ($5 + $6 + $7 - $1 - $2 - $3); printf "%d", af - all / 2 - ($8 - lr) }')
	echo "# $case: repaid $repaid of $owed bits"
	if [ "$repaid" -ge $((owed - 16000)) ] && [ "$repaid" -le $((owed + 16000)) ]; then pass "$case: AF is repaid"; else fault "$case: AF is repaid" "$repaid of $owed bits: $*"; fi
	drained "$case: drains" 10:
	clear
}
outage carrier 1 root
outage carrier 60 root
outage down 60 root
tc qdisc add dev v0 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
outage down 1 parent 1:2

# a new qdisc begins anew
tc qdisc add dev v0 root handle 10: $pss
same "a new qdisc owes nothing" "$(credit)" $owed
clear

# pds: counts of arrivals and losses; packets of the blocked class wait, 5 of 25 are lost
tc qdisc add dev v0 root handle 10: pds classes 2 default 1 limit 20 history infinite class 1 rate 0
offer 3 25 100
known=$(stat received 10:1),$(stat lost 10:1)
same "pds: received and lost" "$known" "25p,5p"
ip link set v0 down
ip link set v0 up
ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
same "pds: known after the device was down" "$(stat received 10:1),$(stat dropped_reset 10:1)" "25p,20p"
echo "# pds lost: $known, $(stat lost 10:1)"
offer 3 25 100
same "pds: and counted on" "$(stat received 10:1) $(backlog 10:)" "50p 20"
clear

# lw_pf and lw_codes: means of what was sent
mean() { stat mean 10:1 | awk '{ f = /Gbit/ ? 1e9 : /Mbit/ ? 1e6 : /Kbit/ ? 1e3 : 1; sub(/[GMK]?bit/, ""); printf "%.0f", $1 * f }'; }
for kind in lw_pf lw_codes; do
	holds "$kind" tc qdisc add dev v0 root handle 10: $kind classes 2 default 1 tc 100s class 1 rate 1mbit
	offer 3 20 1000
	drained "$kind: drains" 10:
	known=$(mean)
	ip link set v0 down
	ip link set v0 up
	ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
	echo "# $kind: a mean of $known, then $(mean)"
	if [ "$known" -gt 0 ] && [ "$(mean)" -gt $((known / 2)) ]; then pass "$kind: known after the device was down"; else fault "$kind: known after the device was down" "$(mean), was $known"; fi
	clear
done
unwire
