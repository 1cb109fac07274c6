# SPDX-License-Identifier: GPL-2.0-only
# remove-queues.sh - a device with four transmission queues: refused below mq 200 times, and removed as the root with full queues.
. /guest/bpf.sh

wire 4
settings rr 100kbit ''
sed -i 's/100p/20p/' /tmp/rr.toml
holds "add" linkweir-bpf add v0 /tmp/rr.toml
kind=$(tc qdisc show dev v0 root | cut -d' ' -f2)
below() { ! tc qdisc add dev v0 parent 1:1 handle 10: "$kind" 2>/dev/null; }
tc qdisc del dev v0 root
holds "mq" tc qdisc add dev v0 root handle 1: mq
below
rounds "refused below mq" 200 below
tc qdisc del dev v0 root
tc qdisc add dev v0 root "$kind"
both() { round del && round replace; }
both
rounds "tc removes the root of four queues, two ways" 100 both
tc qdisc del dev v0 root
linkweir-bpf del v0
same "nothing is pinned" "$(ls /sys/fs/bpf/linkweir | wc -l)" 0
unwire
