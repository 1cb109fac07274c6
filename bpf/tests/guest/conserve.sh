# SPDX-License-Identifier: GPL-2.0-only
# conserve.sh - every packet was sent, was dropped or waits, with each policy; limits in packets and bytes hold.
. /guest/bpf.sh
wire
for file in /guest/*.bpf.o; do
	policy=$(basename "$file" .bpf.o)
	if [ "$policy" = pss ]; then settings pss 2Mbit "$(reserve 800kbit)"; else settings "$policy" 2Mbit ''; fi
	holds "$policy: add" linkweir-bpf add v0 /tmp/"$policy".toml
	begin_flows
	sleep 2
	quiet_flows
	conserved "$policy"
	holds "$policy: del" linkweir-bpf del v0
done

# a packet of 1000 bytes takes a second, so what does not fit stays and is dropped
cat >/tmp/limits.toml <<END
link = { rate = "8kbit" }
scheduler = { policy = "strict" }
[[class]]
name = "ef"
match = [{ dscp = "EF" }]
limit = "20p"
[[class]]
name = "af"
match = [{ dscp = "AF11" }]
limit_bytes = "10kB"
[[class]]
name = "be"
limit = "100p"
limit_bytes = "5.5kB"
END
holds "limits" linkweir-bpf add v0 /tmp/limits.toml
traffic send 10.0.0.2 5003 0 1 958 0 # this one leaves
for class in 1 2 3; do same "class $class: refused" "$(traffic offer 10.0.0.2 500$class "$(echo "0 0xb8 0x28 0" | cut -d' ' -f$((class + 1)))" 30 958)" "$(echo "0 10 20 25" | cut -d' ' -f$((class + 1)))"; done
look
sed 's/^/# /' /tmp/show
same "EF: 20 packets wait" "$(waiting ef)" 20
same "AF: 10,000 bytes wait" "$(waiting af) $(of af backlog)" "10 10000"
same "BE: 5,500 bytes are 5 packets" "$(waiting be) $(of be backlog)" "5 5000"
same "drops" "$(dropped ef) $(dropped af) $(dropped be)" "10 20 25"
says "tc has the same" "dropped 55," tc -s qdisc show dev v0 root
says "and the same backlog" "backlog 35000b 35p" tc -s qdisc show dev v0 root
ip link set v0 down
look
same "a device that goes down frees them" "$(waiting ef) $(waiting af) $(waiting be)" "0 0 0"
sound "down"
ip link set v0 up
traffic send 10.0.0.2 5003 0 1 958 0
look
same "and up again it sends" "$(sent be)" 2
holds "del" linkweir-bpf del v0
unwire
