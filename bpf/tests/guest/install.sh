#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# install.sh - on an installed system that was booted: the five commands of docs/howto/bpf.md, with the unit of systemd.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
check() { # check WHAT COMMAND...
	what=$1
	shift
	if output=$("$@" 2>&1); then echo "ok - $what"; else echo "not ok - $what: $output"; fi
}
none() { for tool; do ! command -v "$tool" || return 1; done; }

echo "# Linux $(uname -r), systemd $(systemctl --version | sed -n '1s/[^ ]* \([0-9]*\).*/\1/p')"
check "no compiler" none cc gcc clang make
check "no headers" sh -c '! ls -d /usr/src/linux-headers*'
check "no module" sh -c '! modinfo sch_linkweir'
ip netns add b
ip link add v0 type veth peer name v1 netns b
ip addr add 10.0.0.1/24 dev v0
ip link set v0 up
ip -n b addr add 10.0.0.2/24 dev v1
ip -n b link set v1 up
mkdir -p /etc/linkweir/bpf
sed 's/20Mbit/1Mbit/; s/4Mbit/400kbit/' /usr/share/doc/linkweir-bpf/examples/example.toml >/etc/linkweir/bpf/v0.toml
check "check" linkweir-bpf check /etc/linkweir/bpf/v0.toml
check "add" linkweir-bpf add v0 /etc/linkweir/bpf/v0.toml
check "show" sh -c 'linkweir-bpf show v0 | grep "calls: sent 0 bytes"'
check "del" linkweir-bpf del v0
check "the unit starts" systemctl enable --now linkweir-bpf@v0
check "it is the root" sh -c 'tc qdisc show dev v0 root | grep _pss'
ip netns exec b traffic measure 5001 5003 >/tmp/count &
counter=$!
sleep 0.5
traffic send 10.0.0.2 5003 0 0 958 3000 >/tmp/flood & # 2.6 Mbit/s into 1
flood=$!
sleep 3
traffic send 10.0.0.2 5001 0xb8 100 158 20000 # calls, while the queue is full
kill $flood
wait $flood
linkweir-bpf show v0 | sed 's/^/# /'
check "the flood lost packets" sh -c 'linkweir-bpf show v0 | grep "rest:" | grep -v "limit 0 "'
check "calls lost none" sh -c 'linkweir-bpf show v0 | grep "calls: sent 20000 bytes 100 pkt" | grep "limit 0 "'
sleep 5
kill $counter
wait $counter
sed 's/^/# arrived: /' /tmp/count
# within two of the flood's packets, 8 ms each
check "99 % of calls waited at most 18 ms" awk '$1 == 5001 { exit !($2 == 100 && $7 < 18000000) }' /tmp/count
sed -i 's/400kbit/300kbit/' /etc/linkweir/bpf/v0.toml
check "reload" systemctl reload linkweir-bpf@v0
check "the reloaded file" sh -c 'linkweir-bpf link v0 2Mbit; ping -c 1 10.0.0.2 >/dev/null 2>&1; traffic send 10.0.0.2 5003 0 1 158 0; linkweir-bpf settings v0 | grep 300kbit'
check "stop" systemctl stop linkweir-bpf@v0
check "the device has its usual root" sh -c 'tc qdisc show dev v0 root | grep noqueue'
sed -i 's/pss/none/' /etc/linkweir/bpf/v0.toml
check "a wrong file fails the unit" sh -c '! systemctl start linkweir-bpf@v0'
check "and the device works" ip link show v0
echo "ended install"
