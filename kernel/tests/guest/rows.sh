# SPDX-License-Identifier: GPL-2.0-only
# rows.sh - tc commands: add, change, replace, show, delete; refusals and their texts.
. /guest/checks.sh
wire
options() { tc qdisc show dev v0 root | sed 's/.* refcnt [0-9]* //; s/ *$//'; }
class() { tc class show dev v0 classid "$1" | sed 's/^class [^ ]* [^ ]* parent [^ ]* //; s/ *$//'; }

holds "the vectors pass" modprobe linkweir_vectors
says "they were replayed" "all as expected" dmesg
rmmod linkweir_vectors

# --- settings are shown as given ---
holds "pss" tc qdisc add dev v0 root handle 1: pss classes 3 link 20mbit default 3 dscp EF=1,AF=2,CS0=3 sat paper on_empty reset early ignore \
	class 1 limit 200 class 2 low_level 4 rate 8mbit burst 10 mtu 1600 memory 5s limit 300p limit_bytes 1mb class 3 level 3
same "pss shows the qdisc" "$(options)" "classes 3 link 20Mbit default 3 dscp CS0=3,AF11=2,AF12=2,AF13=2,AF21=2,AF22=2,AF23=2,AF31=2,AF32=2,AF33=2,AF41=2,AF42=2,AF43=2,EF=1 sat paper on_empty reset early ignore"
same "pss shows a class" "$(class 1:2)" "limit 300p limit_bytes 1Mb low_level 4 rate 8Mbit share 0% burst 10p mtu 1600b memory 5s"
same "pss shows its defaults" "$(class 1:3)" "limit 1000p level 3 rate 0bit share 0% burst 20p mtu 1514b memory 100ms"
show tc -s -j qdisc show dev v0
holds "pss change of the link" tc qdisc change dev v0 root handle 1: pss link 12.5mbit
holds "pss change of a class" tc qdisc change dev v0 root handle 1: pss class 2 memory 1s share 40% rate 0
same "the rest of the class stays" "$(class 1:2)" "limit 300p limit_bytes 1Mb low_level 4 rate 0bit share 40% burst 10p mtu 1600b memory 1s"
same "the rest of the qdisc stays" "$(options)" "classes 3 link 12.5Mbit default 3 dscp CS0=3,AF11=2,AF12=2,AF13=2,AF21=2,AF22=2,AF23=2,AF31=2,AF32=2,AF33=2,AF41=2,AF42=2,AF43=2,EF=1 sat paper on_empty reset early ignore"
holds "pss class change" tc class change dev v0 parent 1: classid 1:2 pss limit 50 lm 9mbit
same "it took" "$(class 1:2)" "limit 50p limit_bytes 1Mb low_level 4 rate 0bit share 40% burst 10p mtu 1600b memory 1s lm 9Mbit"
holds "a parameter is unset again" tc class change dev v0 parent 1: classid 1:2 pss lm unset
same "it took too" "$(class 1:2)" "limit 50p limit_bytes 1Mb low_level 4 rate 0bit share 40% burst 10p mtu 1600b memory 1s"
holds "the map changes by code point" tc qdisc change dev v0 root handle 1: pss dscp AF=0,VA=1
same "and only there" "$(options)" "classes 3 link 12.5Mbit default 3 dscp CS0=3,VA=1,EF=1 sat paper on_empty reset early ignore"
holds "replace with the same kind and handle changes" tc qdisc replace dev v0 root handle 1: pss classes 3 sat exact
same "it kept the rest" "$(options)" "classes 3 link 12.5Mbit default 3 dscp CS0=3,VA=1,EF=1 sat exact on_empty reset early ignore"
holds "replace with another kind" tc qdisc replace dev v0 root handle 2: pds classes 8 limit 80 k 1500 history ring class 1 delay 8 loss 8 class 8 delay 1
same "pds shows the qdisc" "$(options)" "classes 8 default 8 limit 80p history ring k 1500p early off qmin 20p tie larger_delay"
same "pds shows a class" "$(class 2:1)" "limit 1000p delay 8 loss 8"
show tc -s -j qdisc show dev v0
same "eight classes" "$(tc class show dev v0 | grep -c '^class pds 2:')" 8
holds "delete" tc qdisc del dev v0 root
refused "delete again" "" tc qdisc del dev v0 root handle 1:

for kind in lw_pf lw_codes; do
	holds "$kind" tc qdisc add dev v0 root handle 1: $kind classes 2 tc 500ms unit airtime idle freeze class 1 weight 3 rate 5mbit
	same "$kind shows the qdisc" "$(options)" "classes 2 default 2 tc 500ms unit airtime idle freeze"
	holds "$kind rate at run time" tc class change dev v0 parent 1: classid 1:1 $kind rate 1500kbit
	says "$kind shows it" "rate 1.5Mbit weight 3" class 1:1
	holds "$kind blocked" tc class change dev v0 parent 1: classid 1:1 $kind rate 0
	says "$kind shows that" "rate 0bit weight 3" class 1:1
	holds "$kind delete" tc qdisc del dev v0 root
done
holds "limit_bytes alone" tc qdisc add dev v0 root handle 1: lw_codes classes 1 class 1 limit_bytes 30kb timeout 50ms
same "leaves packets unbounded" "$(class 1:1)" "limit_bytes 30Kb weight 1 timeout 50ms"
clear
holds "the most classes" tc qdisc add dev v0 root handle 1: lw_pf classes 4096
same "all of them are shown" "$(tc class show dev v0 | grep -c '^class lw_pf 1:')" 4096
clear
for kind in mlwdf exp_rule exp_pf; do
	holds "$kind" tc qdisc add dev v0 root handle 1: $kind classes 2 class 1 target 50ms delta 1% rate 2mbit
	says "$kind shows a class" "target 50ms delta 1%" class 1:1
	clear
done

# --- refusals ---
add="tc qdisc add dev v0 root handle 1:"
refused "no classes" "classes is missing: give 1 .. 4096" $add pss link 20mbit
refused "no options at all" "classes is missing: give 1 .. 4096" $add pds
refused "classes 0" "classes is outside 1 .. 4096" $add pds classes 0
refused "classes 4097" "classes is outside 1 .. 4096" $add pds classes 4097
refused "link 0" "link is outside 1 .. 1000000000000 bit/s" $add pds classes 2 link 0
refused "link above" "link is outside 1 .. 1000000000000 bit/s" $add pds classes 2 link 1000000000001
refused "default 0" "default is outside 1 .. 2" $add pds classes 2 default 0
refused "default above" "default is outside 1 .. 2" $add pds classes 2 default 3
refused "class 0" "number of a class is outside 1 .. 2" $add pds classes 2 class 0
refused "class above" "number of a class is outside 1 .. 2" $add pds classes 2 class 3
refused "code point to no class" "dscp 46: its class is outside 0 .. 2" $add pds classes 2 dscp EF=3
refused "limit 0" "limit of class 2 is outside 1 .. 100000000 packets" $add lw_codes classes 2 class 2 limit 0
refused "limit above" "limit of class 2 is outside 1 .. 100000000 packets" $add lw_codes classes 2 class 2 limit 100000001
refused "limit_bytes 0" "limit_bytes of class 2 is outside 1 .. 1000000000000 bytes" $add lw_codes classes 2 class 2 limit_bytes 0
refused "rate above" "rate of class 1 is outside 0 .. 1000000000000 bit/s" $add lw_codes classes 2 class 1 rate 1000000000001
refused "pss without link" "the capacity of the link must be known: give it" $add pss classes 2
refused "a rule across parameters" "class 2: a queue with a low_level needs a reservation: give rate or share" $add pss classes 3 link 20mbit class 2 low_level 4
refused "a reservation above the link" "rate of class 2: the reservation must be below the link's capacity" $add pss classes 3 link 20mbit class 2 low_level 4 rate 20mbit
refused "equal levels" "class 2: another queue has this level: all levels, high and low, must differ" $add pss classes 2 link 20mbit class 2 level 0
refused "peld needs decay" "early=peld needs history=decayed: choose that, or early=off" $add pds classes 2 early peld history ring
refused "the parameter before a rule that does not name it" "share of class 3: the reservations add up to more than the link: lower some" $add pss classes 3 link 20mbit class 2 low_level 4 share 60% class 3 low_level 5 share 60%
refused "too many levels" "low_level of class 4096: more than 4096 levels: use fewer controlled queues" $add pss classes 4096 link 20mbit class 1 low_level 5000 rate 1mbit
checked=
while read -r kind scope name value text; do
	case " $checked" in *" $kind "*) ;; *) checked="$checked$kind " ;; esac
	of=
	[ "$scope" = class ] && of="class 2"
	refused "$kind $name $value" "$text" $add "$kind" classes 2 link 20mbit $of "$name" "$value"
done </guest/bounds
numeric=$(awk 'NR == FNR { choice[$1, $2, $3]; next } !(($1, $2, $3) in choice) { print $1 }' /guest/choices /guest/defaults | uniq)
same "a bound of every kind was tried" "$(for kind in $checked; do echo "$kind"; done)" "$numeric"

# of an existing qdisc: a refused change has no effect
holds "pds" $add pds classes 2 limit 80 k 1000
refused "its size stays" "k is fixed when the qdisc is made: delete it and add it again" tc qdisc change dev v0 root handle 1: pds k 1001
refused "its history stays" "history is fixed when the qdisc is made: delete it and add it again" tc qdisc change dev v0 root handle 1: pds limit 70 history ring
same "nothing of it was taken" "$(options)" "classes 2 default 2 limit 80p history decayed k 1000p early off qmin 20p tie larger_delay"
holds "the same size again" tc qdisc change dev v0 root handle 1: pds classes 2 k 1000 history decayed limit 90
refused "one bad class among good ones" "loss of class 2 is outside 1 .. 65535" tc qdisc change dev v0 root handle 1: pds class 1 delay 9 class 2 loss 0
same "nothing of that was taken" "$(class 1:1)" "limit 1000p delay 1 loss 1"
refused "a class that is not there" "classes are made with the qdisc: give classes there" tc class add dev v0 parent 1: classid 1:5 pds delay 2
refused "a class change out of range" "delay of class 1 is outside 1 .. 65535" tc class change dev v0 parent 1: classid 1:1 pds delay 0
refused "a filter on a class" "filters belong to the qdisc: leave the class out of parent" tc filter add dev v0 parent 1:1 matchall classid 1:1
refused "a child" "" tc qdisc add dev v0 parent 1:1 handle 5: pds classes 2
refused "a class cannot go" "" tc class del dev v0 classid 1:1
refused "a module in use" "" rmmod sch_linkweir
clear

# --- refusals by tc itself ---
refused "an unknown word" "pss: a qdisc has no \"foo\"" $add pss classes 2 foo 1
refused "an unknown class word" "pss: a class has no \"bar\"" $add pss classes 2 class 1 bar 1
refused "a unit that does not fit" "memory takes a time such as 100ms, not \"3mbit\"" $add pss classes 2 class 1 memory 3mbit
for word in 0x10 1.5 1e3 1.5p .5 "" 10kb -1 +1 " 1" 18446744073709551616; do
	refused "packets: '$word'" "limit takes a whole number of packets, not \"$word\"" $add pds classes 2 limit "$word"
	refused "packets of a class: '$word'" "limit takes a whole number of packets, not \"$word\"" $add pds classes 2 class 2 limit "$word"
done
for word in 0x2 2.0 2p; do
	refused "classes: '$word'" "classes takes a whole number, not \"$word\"" $add pds classes "$word"
	refused "a class: '$word'" "class takes a whole number, not \"$word\"" $add pds classes 2 class "$word"
	refused "default: '$word'" "default takes a whole number, not \"$word\"" $add pds classes 2 default "$word"
	refused "a ratio: '$word'" "delay takes a whole number, not \"$word\"" $add pds classes 2 class 2 delay "$word"
	refused "a code point: '$word'" "dscp takes CODE=CLASS,..., not \"$word=1\"" $add pds classes 2 dscp "$word=1"
	refused "its class: '$word'" "dscp takes CODE=CLASS,..., not \"EF=$word\"" $add pds classes 2 dscp "EF=$word"
done
for word in 0x10 0X10mbit 0.4 1mbit5 mbit; do
	refused "a rate: '$word'" "link takes a rate such as 20mbit, not \"$word\"" $add pds classes 2 link "$word"
done
refused "a time that is not 0 and would be" "memory takes a time such as 100ms, not \"0.3ns\"" $add pss classes 2 class 1 memory 0.3ns
refused "a size in hexadecimal" "limit_bytes takes a size such as 15kb, not \"0x10kb\"" $add pds classes 2 class 1 limit_bytes 0x10kb
refused "a part in hexadecimal" "share takes a part such as 40%, not \"0x10%\"" $add pss classes 2 class 1 share 0x10%
refused "a choice that is none" "sat takes exact|paper, not \"half\"" $add pss classes 2 sat half
refused "a value that is missing" "a value must follow \"link\"" $add pss classes 2 link
refused "a code point that is none" "dscp takes CODE=CLASS,..., not \"AF99=1\"" $add pss classes 2 dscp AF99=1
refused "help" "Usage: ... lw_codes classes N" $add lw_codes help

# --- as default qdisc, which gets no options: the device stays without a qdisc ---
modprobe tun
[ -e /dev/net/tun ] || { mkdir -p /dev/net && mknod /dev/net/tun c 10 200; }
default=$(cat /proc/sys/net/core/default_qdisc)
holds "pds is the default qdisc" sh -c 'echo pds >/proc/sys/net/core/default_qdisc'
holds "a device that wants one" ip tuntap add t0 mode tun
holds "it comes up" ip link set t0 up
says "without one" "qdisc noqueue" ip link show t0
ip link del t0
echo "$default" >/proc/sys/net/core/default_qdisc
unwire
