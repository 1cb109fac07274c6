# SPDX-License-Identifier: GPL-2.0-only
# rates.sh - pss keeps a reservation and loses no packet of EF, also after a fade and a change; packets are conserved.
. /guest/bpf.sh
wire
settings pss 2Mbit "$(reserve 800kbit)"
holds "add" linkweir-bpf add v0 /tmp/pss.toml
says "tc shows it" pss tc qdisc show dev v0 root
refused "a second add" "has a discipline of linkweir-bpf already" linkweir-bpf add v0 /tmp/pss.toml
# Bounds of AF at its reservation, 800 kbit/s of at most 2000: over 5 s its credit moves at most from LR to LM, 19 packets of 1514 bytes *
# (1 - 0.4), and by a packet of its own and 40 % of one of BE. These 149 kbit are 30 kbit/s. BE gets them, or lacks them. The sum is the
# link's rate, to 0.2 % of the time and a packet.
full() { # full RATE
	within "$1 kbit/s of the link are used" "$((ef + af + be))" "$(($1 * 995 / 1000 - 1))" "$(($1 * 1005 / 1000 + 1))"
}
begin_flows
sleep 1
rates 5
within "EF gets what it sends, kbit/s" "$ef" 192 202
within "AF gets its reservation" "$af" 770 830
within "BE gets the rest" "$be" 970 1035
full 2000
holds "the link fades" linkweir-bpf link v0 1.04Mbit
sleep 1
rates 5
says "show has the rate" "link 1.04Mbit" cat /tmp/show
within "EF after a fade" "$ef" 192 202
within "AF after a fade" "$af" 770 830
within "BE after a fade" "$be" 10 75
full 1040
holds "it fades below the reservation" linkweir-bpf link v0 600kbit
sleep 1
rates 5
within "EF still" "$ef" 192 202
within "AF gets what is left" "$af" 390 415 # always at its high level: no credit to move
full 600
holds "the link comes back" linkweir-bpf link v0 2Mbit
settings pss 2Mbit "$(reserve 400kbit)"
holds "a change" linkweir-bpf change v0 /tmp/pss.toml
sleep 1
rates 5
within "AF gets its new reservation" "$af" 370 430
within "BE gets more" "$be" 1365 1435
full 2000
quiet_flows
conserved pss
same "EF lost nothing" "$(dropped ef)" 0
holds "del" linkweir-bpf del v0
refused "show afterwards" "has no discipline of linkweir-bpf" linkweir-bpf show v0
unwire
