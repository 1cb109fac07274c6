# SPDX-License-Identifier: GPL-2.0-only
# super.sh - what super-packets do, which BPF cannot split: the wait of calls behind them, and the rate.
. /guest/bpf.sh

wire
settings pss 2Mbit "$(reserve 800kbit)"
holds "add" linkweir-bpf add v0 /tmp/pss.toml
calls() { # calls WHAT PORT COMMAND...: sets `p99`, in us, of calls while a command repeats
	begin_measure 5001 5003
	flow 5001 0xb8 158 8000
	sh -c "while :; do $2; done" &
	flood=$!
	sleep 4
	kill $flood
	quiet
	waits "$1 drains" is_empty
	sleep 0.2
	kill "$counter"
	wait "$counter"
	p99=$(awk '$1 == 5001 { printf "%.0f", $7 / 1000 }' /tmp/count)
	echo "# $1: 99 % of calls within $p99 us"
	awk -v what="$1" '$1 == 5003 { printf "# %s: %d packets, %.0f kbit/s\n", what, $2, $2 * 1042 * 8e6 / ($6 - $5) }' /tmp/count
}
calls "packets of 1042 bytes" "traffic send 10.0.0.2 5003 0 50 1000 1000"
within "calls wait for one packet, us" "$p99" 1 5000 # it takes 4168 us
calls "super-packets of 60 of these" "traffic super 10.0.0.2 5003 0 1 60000 1000; sleep 0.1"
within "calls wait for a super-packet, us" "$p99" 100000 260000
look
sound "super-packets"
holds "del" linkweir-bpf del v0
unwire
