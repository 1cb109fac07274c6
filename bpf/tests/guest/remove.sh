# SPDX-License-Identifier: GPL-2.0-only
# remove.sh - 200 rounds: packets that wait are freed when the discipline is removed or replaced, or its device goes away.
. /guest/bpf.sh

wire
settings pss 100kbit "$(reserve 40kbit)"
sed -i 's/100p/20p/' /tmp/pss.toml
holds "add" linkweir-bpf add v0 /tmp/pss.toml
kind=$(tc qdisc show dev v0 root | cut -d' ' -f2)
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
