# SPDX-License-Identifier: GPL-2.0-only
# ecn.sh - packets that could carry a mark (ECT) are dropped where Linux's codel marks them: BPF can write no header.
. /guest/bpf.sh

wire
congest() { # congest: 3.9 Mbit/s of ECT(0) for 3 s; sets `offered`, `arrived_sum`, `arrived_marked`
	begin_count 5003
	flow 5003 2 958 2000
	sleep 3
	quiet
	waits "it drains" is_empty
	end_count
	offered=$(cat /tmp/sent.5003)
	echo "# $1: $offered sent, $arrived_sum arrived, $arrived_marked with a mark"
}
holds "tbf" tc qdisc add dev v0 root handle 1: tbf rate 2mbit burst 3000 limit 200000
holds "Linux's codel" tc qdisc add dev v0 parent 1: codel limit 100 ecn
congest "Linux's codel"
if [ "$arrived_marked" -gt 5 ]; then pass "Linux's codel marks"; else fault "Linux's codel marks" "$arrived_marked packets"; fi
tc qdisc del dev v0 root
for policy in codel fq_codel codes; do
	settings $policy 2Mbit ''
	holds "$policy: add" linkweir-bpf add v0 /tmp/$policy.toml
	congest $policy
	look
	sed -n 's/^  be:/# be:/p' /tmp/show
	same "$policy: no mark" "$arrived_marked" 0
	leaving=$(of be leaving)
	if [ "$leaving" -gt 5 ]; then pass "$policy: drops instead"; else fault "$policy: drops instead" "$leaving"; fi
	same "$policy: what did not arrive was dropped" "$((offered - arrived_sum))" "$(dropped be)"
	sound $policy
	holds "$policy: del" linkweir-bpf del v0
done
unwire
