# SPDX-License-Identifier: GPL-2.0-only
# remove.sh - 200 rounds: packets that wait are freed when the discipline is removed, changed, or its device goes away.
. /guest/checks.sh

wire
settings pss 1Mbit 'rate = "400kbit"
low_level = 4'
round() { # round HOW: fills the queues, then removes the discipline
	linkweir-bpf add v0 /tmp/pss.toml || return 1
	for tos in 0xb8 0x28 0; do traffic send 10.0.0.2 5009 $tos 60 958 0; done
	waiting=$((waiting + $(of ef pkt) + 0))
	case $1 in
	del) linkweir-bpf del v0 ;;
	tc) tc qdisc del dev v0 root && linkweir-bpf del v0 ;;
	replace) tc qdisc replace dev v0 root pfifo && linkweir-bpf del v0 && tc qdisc del dev v0 root ;;
	esac
}
waiting=0
for how in del tc replace; do
	round $how && round $how || fault "$how" "a round failed"
done
before=$(slabs)
for n in $(seq 66); do for how in del tc replace; do round $how || fault "$how $n" "a round failed"; done; done
sleep 2
after=$(slabs)
echo "# packets in slabs: $before before, $after after 198 rounds"
within "no packet is left, difference" "$((after - before + 1000))" 900 1100
before=$(slabs)
for n in 1 2 3 4 5 6 7 8 9 10; do
	linkweir-bpf add v0 /tmp/pss.toml || fault "device $n" "not added"
	for tos in 0xb8 0x28 0; do traffic send 10.0.0.2 5009 $tos 60 958 0; done
	ip link del v0
	ip netns del b
	wire
done
sleep 2
after=$(slabs)
echo "# packets in slabs: $before before, $after after 10 devices went away with full queues"
within "a device that goes away leaves none, difference" "$((after - before + 1000))" 900 1100
