# SPDX-License-Identifier: GPL-2.0-only
# cost.sh - instructions a packet, compared with the module and the kernel's own disciplines in one run. The clock counts instructions.
#
# cost NAME IN-TURN LOADED: one packet in an empty discipline, and with 64 waiting.
. /guest/bpf.sh
export TC_LIB_DIR=/guest/tc
ip link add d0 type dummy
ip link set d0 up
insmod /guest/modules/sch_linkweir.ko || fault "the module" "is refused"

cost() { # cost NAME: of the discipline that is there; sets `costs`. Without one the measuring module would call no function.
	costs="0 0"
	if tc qdisc show dev d0 root | grep -q noqueue; then
		fault "$1" "is not there"
		return
	fi
	dmesg -c >/dev/null
	insmod /guest/modules/qdisc_cost.ko device=d0 classes=3 waiting=64 2>/dev/null
	costs=$(dmesg | sed -n 's/.*cost .* in turn \(.*\) loaded \(.*\)/\1 \2/p' | tail -1)
	same "$1: two costs, none of them 0" "$(echo "$costs" | awk '{ print NF, ($1 > 0) + ($2 > 0) }')" "2 2"
	echo "# cost $1 $costs"
}
linux() { # linux NAME KIND OPTION...
	name=$1
	shift
	holds "$name" tc qdisc add dev d0 root "$@"
	cost "$name"
	tc qdisc del dev d0 root
}
bpf() { # bpf POLICY RATE SHAPE CLASS2: three classes as those of the module
	cat >/tmp/cost.toml <<END
link = { rate = "$2", shape = $3 }
scheduler = { policy = "$1" }
[[class]]
name = "ef"
match = [{ dscp = "EF" }]
[[class]]
name = "af"
match = [{ dscp = "AF11" }]
$4
[[class]]
name = "be"
END
	holds "$1 in BPF" linkweir-bpf add d0 /tmp/cost.toml
	cost "$1-bpf$5"
	linkweir-bpf del d0
}
ratio() { # ratio WHAT COSTS OF
	echo "$2 $3" | awk -v what="$1" '{ printf "# %s: %.2f times in turn, %.2f times loaded\n", what, $1 / $3, $2 / $4 }'
}
classes="classes 3 dscp EF=1,AF11=2"
reserved='low_level = 4
rate = "400Mbit"'
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
linux pss-bandwidth pss $classes bandwidth 1tbit class 2 low_level 4 rate 400mbit
paced=$costs
bpf pss 1000Gbit true "$reserved" -bandwidth
ratio "pss in BPF with a bandwidth, of the module" "$costs" "$paced"
linux pds pds classes 3 dscp EF=1,AF11=2 limit 1000
pds=$costs
bpf pds 1Gbit false 'delay = 1'
ratio "pds in BPF, of the module" "$costs" "$pds"
for policy in fifo strict rr wrr drr codel fq_codel; do
	bpf $policy 1Gbit false ''
	ratio "$policy in BPF, of fq_codel" "$costs" "$fq_codel"
done
