# SPDX-License-Identifier: GPL-2.0-only
# pace-real.sh - in real time, on several processors: the rate of the shaper next to tbf's, five rounds each in turn.
#
# Wake-ups are late on a busy host. tbf makes up for it by its burst, here three packets or one; the shaper for 1 ms at once, and for 10 ms
# more over the next packets.
. /guest/bpf.sh

wire
cat >/tmp/fifo.toml <<END
link = { rate = "2Mbit" }
scheduler = { policy = "fifo" }
class = [{ name = "all", limit = "100p" }]
END
measure() { # measure WHAT: the rate of a greedy sender, bit/s
	begin_measure 5003
	flow 5003 0 958 1000
	sleep 4
	quiet
	waits "$1 drains" is_empty
	sleep 0.5
	kill "$counter"
	wait "$counter"
	awk -v what="$1" 'NF == 7 { printf "# %s: %.0f bit/s over %.1f s\n", what, ($2 - 1) * 8e12 / ($6 - $5), ($6 - $5) / 1e9 }' /tmp/count | tee -a /tmp/rates
}
for round in 1 2 3 4 5; do
	tc qdisc add dev v0 root tbf rate 2mbit burst 3000 limit 100000
	measure tbf
	tc qdisc del dev v0 root
	tc qdisc add dev v0 root tbf rate 2mbit burst 1100 limit 100000
	measure tbf-of-one
	tc qdisc del dev v0 root
	linkweir-bpf add v0 /tmp/fifo.toml
	measure bpf
	look
	sound "round $round"
	linkweir-bpf del v0
done
awk '{ sum[$2] += $3; n[$2]++ } END { printf "# mean: tbf %.0f, with a burst of one packet %.0f, bpf %.0f bit/s\n",
		sum["tbf:"] / n["tbf:"], sum["tbf-of-one:"] / n["tbf-of-one:"], sum["bpf:"] / n["bpf:"]
	exit !(n["bpf:"] == 5 && sum["bpf:"] < 1.002 * 5 * 2e6 && sum["bpf:"] > 0.98 * sum["tbf:"]) }' /tmp/rates >/tmp/mean
code=$?
cat /tmp/mean
same "the shaper holds its rate as tbf does" "$code" 0
unwire
