# SPDX-License-Identifier: GPL-2.0-only
# rates.sh - pss keeps a reservation and loses no packet of EF, also after a fade and a change; packets are conserved.
. /guest/bpf.sh
wire
settings pss 10Mbit "$(reserve 4Mbit)"
holds "add" linkweir-bpf add v0 /tmp/pss.toml
says "tc shows it" pss tc qdisc show dev v0 root
refused "a second add" "has a discipline of linkweir-bpf already" linkweir-bpf add v0 /tmp/pss.toml
begin_flows
sleep 1
rates 5
within "EF gets what it sends, kbit/s" "$ef" 980 1010
within "AF gets its reservation" "$af" 3950 4080
within "BE gets the rest" "$be" 4900 5060
holds "the link fades" linkweir-bpf link v0 5.2Mbit
sleep 1
says "show has the rate" "link 5.2Mbit" linkweir-bpf show v0
rates 5
within "EF after a fade" "$ef" 980 1010
within "AF after a fade" "$af" 3900 4080
within "BE after a fade" "$be" 100 320
holds "it fades below the reservation" linkweir-bpf link v0 3Mbit
sleep 1
rates 5
within "EF still" "$ef" 980 1010
within "AF gets what is left" "$af" 1900 2030
holds "the link comes back" linkweir-bpf link v0 10Mbit
settings pss 10Mbit "$(reserve 2Mbit)"
holds "a change" linkweir-bpf change v0 /tmp/pss.toml
sleep 1
rates 5
within "AF gets its new reservation" "$af" 1950 2080
within "BE gets more" "$be" 6850 7080
quiet_flows
conserved
same "EF lost nothing" "$(of ef limit)" 0
holds "del" linkweir-bpf del v0
refused "show afterwards" "has no discipline of linkweir-bpf" linkweir-bpf show v0
settings strict 10Mbit ''
holds "strict" linkweir-bpf add v0 /tmp/strict.toml
begin_flows
sleep 1
rates 3
within "strict: AF gets all it sends" "$af" 5850 6100
quiet_flows
conserved
holds "del strict" linkweir-bpf del v0
