# SPDX-License-Identifier: GPL-2.0-only
# costs.sh - functions of cost.sh and speed-real.sh: what a packet costs in a discipline of the device d0.
. /guest/bpf.sh
export TC_LIB_DIR=/guest/tc
ip link add d0 type dummy
ip link set d0 up
insmod /guest/modules/sch_linkweir.ko || fault "the module" "is refused"

# of the discipline that is there; sets `costs`: one packet in an empty discipline, and with 64 waiting. Without a discipline the measuring
# module would call no function. `measured` are more parameters of that module.
cost() { # cost NAME
	costs="0 0"
	if tc qdisc show dev d0 root | grep -q noqueue; then
		fault "$1" "is not there"
		return
	fi
	dmesg -c >/dev/null
	insmod /guest/modules/qdisc_cost.ko device=d0 classes=3 waiting=64 $measured 2>/dev/null
	costs=$(dmesg | sed -n 's/.*cost .* in turn \(.*\) loaded \(.*\)/\1 \2/p' | tail -1)
	same "$1: two costs, none of them 0" "$(echo "$costs" | awk '{ print NF, ($1 > 0) + ($2 > 0) }')" "2 2"
}
speed() { # speed NAME CLOCK: of `costs`
	echo "# cost $1 $costs"
	echo "$costs" | awk -v clock="$2" '$1 && $2 { printf "# million packets/s %s: %.2f in turn, %.2f loaded\n", clock, 1000 / $1, 1000 / $2 }'
}
linux() { # linux NAME KIND OPTION...: what `measure` of the script finds
	name=$1
	shift
	holds "$name" tc qdisc add dev d0 root "$@"
	measure "$name"
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
	measure "$1-bpf$5"
	linkweir-bpf del d0
}
ratio() { # ratio WHAT COSTS OF
	echo "$2 $3" | awk -v what="$1" '{ printf "# %s: %.2f times in turn, %.2f times loaded\n", what, $1 / $3, $2 / $4 }'
}
holds "the least disciplines are registered" bpftool struct_ops register /guest/modules/least.bpf.o
if [ -e /guest/modules/bpf_qdisc_fq.bpf.o ]; then # the kernel's own example
	holds "bpf_fq is registered" bpftool struct_ops register /guest/modules/bpf_qdisc_fq.bpf.o
	has_bpf_fq=yes
fi
classes="classes 3 dscp EF=1,AF11=2"
reserved='low_level = 4
rate = "400Mbit"'
