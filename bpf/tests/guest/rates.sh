# SPDX-License-Identifier: GPL-2.0-only
# rates.sh - pss keeps a reservation and loses no packet of EF, also after a fade and a change; packets are conserved.
. /guest/bpf.sh
wire
settings pss 2Mbit "$(reserve 800kbit)"
holds "add" linkweir-bpf add v0 /tmp/pss.toml
says "tc shows it" pss tc qdisc show dev v0 root
refused "a second add" "has a discipline of linkweir-bpf already" linkweir-bpf add v0 /tmp/pss.toml
# bounds: what is reserved, and a burst of 20 packets over the time
begin_flows
sleep 1
rates 5
within "EF gets what it sends, kbit/s" "$ef" 192 202
within "AF gets its reservation" "$af" 770 830
within "BE gets the rest" "$be" 970 1035
holds "the link fades" linkweir-bpf link v0 1.04Mbit
sleep 1
rates 5
says "show has the rate" "link 1.04Mbit" cat /tmp/show
within "EF after a fade" "$ef" 192 202
within "AF after a fade" "$af" 790 820
within "BE after a fade" "$be" 20 60
holds "it fades below the reservation" linkweir-bpf link v0 600kbit
sleep 1
rates 5
within "EF still" "$ef" 192 202
within "AF gets what is left" "$af" 370 430
holds "the link comes back" linkweir-bpf link v0 2Mbit
settings pss 2Mbit "$(reserve 400kbit)"
holds "a change" linkweir-bpf change v0 /tmp/pss.toml
sleep 1
rates 5
within "AF gets its new reservation" "$af" 370 430
within "BE gets more" "$be" 1365 1435
quiet_flows
conserved pss
same "EF lost nothing" "$(dropped ef)" 0
holds "del" linkweir-bpf del v0
refused "show afterwards" "has no discipline of linkweir-bpf" linkweir-bpf show v0
unwire
