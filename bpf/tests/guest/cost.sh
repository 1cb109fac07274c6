# SPDX-License-Identifier: GPL-2.0-only
# cost.sh - instructions a packet, compared with the module and the kernel's own disciplines in one run. The clock counts instructions.
#
# cost NAME IN-TURN LOADED: one packet in an empty discipline, and with 64 waiting. Packets per second follow from them, at an instruction
# a nanosecond: they compare disciplines and say nothing about a processor.
measured=
. /guest/costs.sh

measure() { # measure NAME
	cost "$1"
	speed "$1" "at 1 instruction/ns"
}
for kind in least least_clock least_stats; do
	linux $kind $kind
	least=$costs
done
if [ "$has_bpf_fq" ]; then
	linux bpf_fq bpf_fq
	bpf_fq=$costs
fi
linux pfifo pfifo limit 1000
linux fq_codel fq_codel
fq_codel=$costs
linux fq fq
fq=$costs
linux pss pss $classes link 1gbit class 2 low_level 4 rate 400mbit
pss=$costs
bpf pss 1Gbit false "$reserved"
ratio "pss in BPF, of the module" "$costs" "$pss"
ratio "pss in BPF, of fq_codel" "$costs" "$fq_codel"
ratio "pss in BPF, of fq" "$costs" "$fq"
ratio "pss in BPF, of the least that a BPF discipline does" "$costs" "$least"
[ -z "$bpf_fq" ] || ratio "pss in BPF, of bpf_fq" "$costs" "$bpf_fq"
linux pss-bandwidth pss $classes bandwidth 1tbit class 2 low_level 4 rate 400mbit
paced=$costs
bpf pss 1000Gbit true "$reserved" -bandwidth
ratio "pss in BPF with a bandwidth, of the module" "$costs" "$paced"
linux pds pds classes 3 dscp EF=1,AF11=2 limit 1000
pds=$costs
bpf pds 1Gbit false 'delay = 1'
ratio "pds in BPF, of the module" "$costs" "$pds"
linux pf lw_pf $classes link 1gbit
pf=$costs
bpf pf 1Gbit false ''
ratio "pf in BPF, of the module" "$costs" "$pf"
linux codes lw_codes $classes link 1gbit
codes=$costs
bpf codes 1Gbit false ''
ratio "codes in BPF, of the module" "$costs" "$codes"
for policy in fifo strict rr wrr drr codel fq_codel; do
	bpf $policy 1Gbit false ''
	ratio "$policy in BPF, of fq_codel" "$costs" "$fq_codel"
done
