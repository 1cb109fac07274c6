# SPDX-License-Identifier: GPL-2.0-only
# checks.sh - functions of the guest scripts to report results, and the pair of devices they work on. Also of the scripts in bpf/.
#
#   here                      namespace b
#   v0 10.0.0.1 ------------- v1 10.0.0.2
#
# A check prints "ok - WHAT" or "not ok - WHAT" and continues. `show` prints JSON for the host to parse.

pass() { echo "ok - $1"; }
fault() {
	echo "not ok - $1: $2"
	if grep -q checks=first /proc/cmdline; then poweroff -f; fi
}

if [ ! "$LINKWEIR_BPF_OBJECTS" ]; then
	modprobe veth
	[ -e /sys/module/sch_linkweir ] || modprobe sch_linkweir || fault "the module loads" "it is refused"
fi

holds() { # holds WHAT COMMAND...
	what=$1
	shift
	if out=$("$@" 2>&1); then pass "$what"; else fault "$what" "$out"; fi
}

refused() { # refused WHAT TEXT COMMAND...: it fails, with this text
	what=$1 text=$2
	shift 2
	if out=$("$@" 2>&1); then
		fault "$what" "accepted"
	else
		case $out in
		*"$text"*) pass "$what" ;;
		*) fault "$what" "printed: $out" ;;
		esac
	fi
}

says() { # says WHAT TEXT COMMAND...: it succeeds, and its output contains this text
	what=$1 text=$2
	shift 2
	if out=$("$@" 2>&1); then
		case $out in
		*"$text"*) pass "$what" ;;
		*) fault "$what" "no '$text' in: $out" ;;
		esac
	else
		fault "$what" "$out"
	fi
}

same() { # same WHAT GOT EXPECTED
	if [ "$2" = "$3" ]; then pass "$1"; else fault "$1" "$2, expected $3"; fi
}
within() { # within WHAT GOT LEAST MOST: whole numbers
	if [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then pass "$1: $2"; else fault "$1" "$2, expected $3 .. $4"; fi
}

show() { # show COMMAND...: its output is JSON
	echo "json $("$@" | tr -d '\n')"
}

in_b() { ip netns exec b "$@"; }

wire() { # wire [QUEUES]: sets it up without address resolution or other packets of the kernel; both ends with so many queues
	ip netns add b
	echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
	echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
	in_b sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
	local queues="${1:-1}"
	ip link add v0 numtxqueues "$queues" numrxqueues "$queues" type veth peer name v1 numtxqueues "$queues" numrxqueues "$queues" netns b
	ip link set v0 address 02:00:00:00:00:01 arp off
	ip -n b link set v1 address 02:00:00:00:00:02 arp off
	ip addr add 10.0.0.1/24 dev v0
	ip -n b addr add 10.0.0.2/24 dev v1
	ip link set v0 up
	ip -n b link set v1 up
	ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
	ip -n b neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev v1 nud permanent
}

unwire() {
	ip link del v0
	ip netns del b
}

# With several processors, QEMU 7.2 was seen to run an instruction that the kernel had already patched away ("Oops: int3", while memory had
# the new instruction). The module's packet path is patched when the first qdisc gets a bandwidth or memlimit and when the last loses it, so a qdisc
# on another device has both meanwhile.
steady() {
	[ "$(grep -c ^processor /proc/cpuinfo)" -gt 1 ] || return
	modprobe dummy
	ip link add steady type dummy && tc qdisc add dev steady root pss classes 1 bandwidth 1mbit memlimit 100kb
}
unsteady() { [ ! -e /sys/class/net/steady ] || ip link del steady; }

# senders of this host, which quiet ends, and a counter in b
begin_measure() { # begin_measure PORT...: in b
	rm -f /tmp/count
	ip netns exec b traffic measure "$@" >/tmp/count &
	counter=$!
	waits "the counter" grep -q ready /tmp/count
}
greedy() { # greedy PORT TOS BYTES PAUSE_US
	traffic send 10.0.0.2 "$1" "$2" 0 "$3" "$4" >>/tmp/sent &
	senders="$senders $!"
}
quiet() {
	kill $senders
	wait $senders
	senders=
}
senders=

clear() { tc qdisc del dev v0 root 2>/dev/null; }

# of `tc -s qdisc show` and `tc -s class show`: the fields of one handle, as shell words
#   sent_bytes sent_pkts dropped backlog_bytes backlog_pkts
fields() { # fields qdisc|class HANDLE
	tc -s "$1" show dev v0 | awk -v kind="$1" -v handle="$2" '
		$1 == kind { mine = $3 == handle }
		mine && $1 == "Sent" { gsub(/[(,]/, ""); sent = $2 " " $4; dropped = $7 }
		mine && $1 == "backlog" { bytes = $2; sub(/b$/, "", bytes); pkts = $3; sub(/p$/, "", pkts); print sent, dropped, bytes, pkts; exit }'
}
stat() { # stat NAME HANDLE: one of the module's statistics of a class
	tc -s class show dev v0 classid "$2" | awk -v name="$1" '{ for (i = 1; i < NF; i++) if ($i == name) { print $(i + 1); exit } }'
}
backlog() { fields qdisc "$1" | awk '{ print $5 }'; }
reasons() { # drops of the only qdisc of the module, summed over the reasons
	tc -s qdisc show dev v0 | awk '{ for (i = 1; i < NF; i++) if ($i ~ /^dropped_/) sum += $(i + 1) } END { print sum }'
}

drained() { # drained WHAT HANDLE: waits until its backlog is empty
	waits "$1" empty "$2" && pass "$1"
}
empty() { [ "$(backlog "$1")" = 0 ]; }

waits() { # waits WHAT COMMAND...: until the command succeeds, for a bounded number of tries
	what=$1
	shift
	tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		if [ $tries -ge 100 ]; then
			fault "$what" "waited in vain"
			return 1
		fi
		sleep 0.1
	done
}

offer() { # offer CLASS COUNT BYTES: with dscp EF=1,AF11=2 and 3 the default
	case $1 in
	1) tos=0xb8 ;;
	2) tos=0x28 ;;
	3) tos=0 ;;
	esac
	traffic send 10.0.0.2 500"$1" $tos "$2" "$3" 0
}

agrees() { # agrees WHAT: the parent's backlog equals the child's, 10:; reads again if a packet left between the two
	tries=0
	until [ "$(fields qdisc 1: | cut -d' ' -f4-5)" = "$(fields qdisc 10: | cut -d' ' -f4-5)" ] || [ $tries -ge 20 ]; do
		tries=$((tries + 1))
	done
	if [ $tries -lt 20 ]; then pass "$1"; else fault "$1" "$(fields qdisc 1:), below $(fields qdisc 10:)"; fi
}

begin_count() { # begin_count PORT...: counts what arrives in b
	rm -f /tmp/count
	ip netns exec b traffic count "$@" >/tmp/count &
	counter=$!
	waits "the counter" grep -q ready /tmp/count
}

end_count() { # sets `arrived`: packets, port by port; `arrived_sum`; `arrived_marked`
	sleep 0.5
	kill $counter
	wait $counter
	arrived=$(awk 'NF == 4 { printf "%s%s", sep, $2; sep = " " }' /tmp/count)
	arrived_sum=$(awk 'NF == 4 { sum += $2 } END { print sum }' /tmp/count)
	arrived_marked=$(awk 'NF == 4 { sum += $4 } END { print sum }' /tmp/count)
}
