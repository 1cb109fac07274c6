# SPDX-License-Identifier: GPL-2.0-only
# kinds.sh - what holds for each kind of the module, whatever its policy: parameters, help, packets and their counts.
. /guest/checks.sh
wire
for kind in $(cat /guest/kinds); do
	holds "$kind" tc qdisc add dev v0 root handle 1: "$kind" classes 3 link 20mbit
	says "$kind shows the qdisc" "qdisc $kind 1: root" tc qdisc show dev v0
	says "$kind shows its link" "classes 3 link 20Mbit default 3" tc qdisc show dev v0
	same "$kind shows its classes" "$(tc class show dev v0 | grep -c "^class $kind 1:")" 3
	refused "$kind explains itself" "Usage: ... $kind classes N" tc qdisc add dev v0 root "$kind" help
	grep "^$kind " /guest/defaults >/tmp/defaults
	while read -r _ scope name value; do
		refused "$kind explains $name" "  $name " tc qdisc add dev v0 root "$kind" help
		case $scope in
		qdisc) holds "$kind takes $name $value" tc qdisc change dev v0 root handle 1: "$kind" "$name" "$value" ;;
		class) holds "$kind takes $name $value of a class" tc class change dev v0 parent 1: classid 1:2 "$kind" "$name" "$value" ;;
		esac
	done </tmp/defaults
	holds "$kind carries packets" ping -c 1 10.0.0.2
	show tc -s -j qdisc show dev v0
	clear

	# more packets than there is room for, faster than they leave
	tc qdisc add dev v0 root handle 1: htb default 1
	tc class add dev v0 parent 1: classid 1:1 htb rate 10kbit
	holds "$kind under htb" tc qdisc add dev v0 parent 1:1 handle 10: "$kind" classes 3 link 100kbit dscp EF=1,AF11=2 \
		class 1 limit 20 class 2 limit 30 class 3 limit 40
	begin_count 5001 5002 5003
	for class in 1 2 3; do
		offer $class 100 1000
		agrees "$kind: the parent counts what waits, class $class"
	done
	if [ "$(backlog 10:)" -gt 20 ]; then pass "$kind: packets wait"; else fault "$kind: packets wait" "$(backlog 10:)"; fi
	tc class change dev v0 parent 1: classid 1:1 htb rate 1gbit
	drained "$kind drains" 10:
	end_count
	same "$kind: the parent is empty" "$(fields qdisc 1: | cut -d' ' -f4-5)" "0 0"
	sent=$(fields qdisc 10: | cut -d' ' -f2) dropped=$(fields qdisc 10: | cut -d' ' -f3)
	same "$kind: every packet was sent or dropped" $((sent + dropped)) 300
	same "$kind: each drop has a reason" "$(reasons)" "$dropped"
	same "$kind: what was sent arrived" "$arrived_sum" "$sent"
	clear
done
unwire
