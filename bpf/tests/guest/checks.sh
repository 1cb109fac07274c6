# SPDX-License-Identifier: GPL-2.0-only
# checks.sh - functions of the guest scripts: each check prints "ok - WHAT" or "not ok - WHAT". The pair of devices they work on:
#   here                      namespace b
#   v0 10.0.0.1 ------------- v1 10.0.0.2
#
# The classes are EF (1 Mbit/s offered), AF (6 Mbit/s offered, 4 reserved) and BE (20 Mbit/s offered).

export LINKWEIR_BPF_OBJECTS=/guest
pass() { echo "ok - $1"; }
fault() { echo "not ok - $1: $2"; }
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
same() { # same WHAT GOT EXPECTED
	if [ "$2" = "$3" ]; then pass "$1"; else fault "$1" "$2, expected $3"; fi
}
within() { # within WHAT GOT LEAST MOST
	if [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then pass "$1: $2"; else fault "$1" "$2, expected $3 .. $4"; fi
}
in_b() { ip netns exec b "$@"; }
wire() {
	ip netns add b
	echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
	echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
	in_b sh -c 'echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6'
	ip link add v0 type veth peer name v1 netns b
	ip link set v0 address 02:00:00:00:00:01 arp off
	ip -n b link set v1 address 02:00:00:00:00:02 arp off
	ip addr add 10.0.0.1/24 dev v0
	ip -n b addr add 10.0.0.2/24 dev v1
	ip link set v0 up
	ip -n b link set v1 up
	ip neigh replace 10.0.0.2 lladdr 02:00:00:00:00:02 dev v0 nud permanent
	ip -n b neigh replace 10.0.0.1 lladdr 02:00:00:00:00:01 dev v1 nud permanent
}
settings() { # settings POLICY RATE AF: writes /tmp/POLICY.toml
	cat >/tmp/"$1".toml <<END
[link]
rate = "$2"
[scheduler]
policy = "$1"
[[class]]
name = "ef"
match = [{ dscp = "EF" }]
limit = "100p"
[[class]]
name = "af"
match = [{ dscp = "AF11" }]
limit = "100p"
$3
[[class]]
name = "be"
limit = "100p"
END
}
# senders until `quiet`, and a counter in b
begin() {
	rm -f /tmp/count /tmp/sent
	in_b traffic measure 5001 5002 5003 >/tmp/count &
	counter=$!
	until grep -q ready /tmp/count; do sleep 0.1; done
	senders=
	send 5001 0xb8 158 1600  # 200 bytes on the device
	send 5002 0x28 958 1333  # 1000 bytes
	send 5003 0 958 400
}
send() {
	traffic send 10.0.0.2 "$1" "$2" 0 "$3" "$4" >/tmp/sent."$1" &
	senders="$senders $!"
}
quiet() {
	kill $senders
	wait $senders
	until linkweir-bpf show v0 | grep -q ' 0 of '; do sleep 0.1; done
	sleep 0.2
	kill "$counter"
	wait "$counter"
	cat /tmp/count
}
of() { # of CLASS FIELD: of `show`; fields by the word before them
	linkweir-bpf show v0 | awk -v class="  $1:" -v word="$2" 'index($0, class) { for (i = 1; i < NF; i++) if ($i == word) { print $(i + 1); exit } }'
}
kbps() { # kbps CLASS SECONDS: rate while the senders send
	before=$(of "$1" sent)
	sleep "$2"
	after=$(of "$1" sent)
	echo $(((after - before) * 8 / 1000 / $2))
}
rates() { # rates SECONDS: sets ef, af and be, in kbit/s
	ef0=$(of ef sent) af0=$(of af sent) be0=$(of be sent) t0=$(awk '{ print $1 * 1000 }' /proc/uptime)
	sleep "$1"
	ef1=$(of ef sent) af1=$(of af sent) be1=$(of be sent) t1=$(awk '{ print $1 * 1000 }' /proc/uptime)
	ef=$(((ef1 - ef0) * 8 / (t1 - t0))) af=$(((af1 - af0) * 8 / (t1 - t0))) be=$(((be1 - be0) * 8 / (t1 - t0)))
	echo "# kbit/s: ef $ef af $af be $be over $((t1 - t0)) ms"
}
conserved() { # conserved WHAT: after quiet; all that was sent arrived or was dropped, by the discipline's counters
	linkweir-bpf show v0 | sed 's/^/# /'
	for class in "ef 5001" "af 5002" "be 5003"; do
		set -- $class
		sent=$(cat /tmp/sent."$2") arrived=$(awk -v port="$2" '$1 == port { print $2 }' /tmp/count)
		dropped=$(of "$1" limit)
		same "$1: sent $sent = arrived $arrived + dropped $dropped" "$sent" "$((arrived + dropped))"
	done
	if linkweir-bpf show v0 | grep -q FAULT; then fault "places" "$(linkweir-bpf show v0 | grep FAULT)"; else pass "no packet without a place"; fi
}
slabs() { awk '/^skbuff_head_cache|^skbuff_small_head|^skbuff_fclone_cache/ { n += $2 } END { print n }' /proc/slabinfo; }
