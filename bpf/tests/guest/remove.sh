# SPDX-License-Identifier: GPL-2.0-only
# remove.sh - 200 rounds: packets that wait are freed when the discipline is removed or replaced, or its device goes away.
. /guest/bpf.sh

wire
settings pss 100kbit "$(reserve 40kbit)"
sed -i 's/100p/20p/' /tmp/pss.toml
holds "add" linkweir-bpf add v0 /tmp/pss.toml
kind=$(tc qdisc show dev v0 root | cut -d' ' -f2)
fill() { for tos in 0xb8 0x28 0; do traffic send 10.0.0.2 5009 $tos 24 958 0; done; }
round() { # round HOW: fills the queues, then removes the discipline; tc makes it again from what the loader pinned
	fill
	full=$(tc -s qdisc show dev v0 root | grep -c 'backlog [0-9]*b \(60\|59\|58\)p')
	[ "$full" = 1 ] || fault "$1" "is not full: $(tc -s qdisc show dev v0 root)"
	case $1 in
	del) tc qdisc del dev v0 root ;;
	replace) tc qdisc replace dev v0 root pfifo && tc qdisc del dev v0 root ;;
	down) ip link set v0 down && ip link set v0 up && tc qdisc del dev v0 root ;;
	away) unwire && wire ;;
	esac
	tc qdisc add dev v0 root "$kind"
}
rounds() { # rounds WHAT COUNT COMMAND...: what is left of it, in packets
	what=$1 count=$2
	shift 2
	sleep 1
	before=$(slabs)
	for n in $(seq "$count"); do "$@" || fault "$what" "round $n failed"; done
	sleep 1
	after=$(slabs)
	echo "# $what: $before packets in slabs before, $after after $count rounds of 60"
	if [ $((after - before)) -le 60 ]; then pass "$what: none is left"; else fault "$what" "$((after - before)) are left"; fi
}
each() { for how in del replace down away; do round $how || return 1; done; }
each
rounds "tc removes it, or the device goes, four ways" 50 each
holds "tc removes it for good" tc qdisc del dev v0 root
loader() {
	linkweir-bpf add v0 /tmp/pss.toml || return 1
	fill
	linkweir-bpf del v0
}
loader
rounds "the loader removes it" 10 loader
gone() {
	linkweir-bpf add v0 /tmp/pss.toml || return 1
	fill
	unwire
	wire
}
rounds "the loader's device goes" 5 gone
same "what a device left is found by the next add" "$(ls /sys/fs/bpf/linkweir | wc -l)" 1
refused "a device that is gone" "there is no device v7" linkweir-bpf del v7
same "and by a del" "$(ls /sys/fs/bpf/linkweir | wc -l)" 0
