# SPDX-License-Identifier: GPL-2.0-only
# speed-real.sh - packets per second in real time, on emulated processors: pss in BPF, the module's pss and the kernel's disciplines, three
# rounds in turn. Of many short measurements the fastest counts: the one that other programs of the host disturbed least. These rates
# compare disciplines; they are no rates of a real processor.
measured="packets=1000 rounds=30"
. /guest/costs.sh

measure() { # measure NAME
	cost "$1"
	echo "$1 $costs" >>/tmp/speeds
}
names="pfifo fq_codel least_stats ${has_bpf_fq:+bpf_fq} pss pss-bpf"
for round in 1 2 3; do
	for name in $names; do
		case $name in
		pss) linux pss pss $classes link 1gbit class 2 low_level 4 rate 400mbit ;;
		pss-bpf) bpf pss 1Gbit false "$reserved" ;;
		*) linux $name $name ;;
		esac
	done
done
fastest() { # fastest NAME: sets `costs`
	costs=$(awk -v name="$1" '$1 == name { if (!n++ || $2 < a) a = $2; if (n == 1 || $3 < b) b = $3 } END { print a, b }' /tmp/speeds)
}
fastest pss-bpf
ours=$costs
for name in $names; do
	fastest $name
	same "$name: measurements" "$(grep -c "^$name [1-9]" /tmp/speeds)" 3
	speed $name "in real time"
	ratio "time of pss in BPF, of $name" "$ours" "$costs"
done
