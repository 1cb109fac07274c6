# SPDX-License-Identifier: GPL-2.0-only
# classify.sh - how the class is chosen: skb->priority, filters, code points, the default. And super-packets.
. /guest/checks.sh
wire
tc qdisc add dev v0 root handle 1: pds limit 100000 classes 4 default 4 dscp EF=1,AF11=2,5=3 class 1 rate 0 class 2 rate 0 class 3 rate 0 class 4 rate 0
counts() { for class in 1 2 3 4; do fields class 1:$class | awk '{ printf "%s ", $5 }'; done; }
send() { traffic send 10.0.0.2 "$1" "$2" "$3" 100 0; }

send 5000 0xb8 3
send 5000 0x28 5
send 5000 0x2b 7
send 5000 0x14 11
send 5000 0x00 13
send 5000 0x30 17
same "code points, whatever the two bits below say" "$(counts)" "3 12 11 30 "
tc qdisc change dev v0 root handle 1: pds dscp CS0=1
send 5000 0x00 100
same "a changed map" "$(counts)" "103 12 11 30 "
holds "a filter" tc filter add dev v0 parent 1: protocol ip prio 1 flower ip_proto udp dst_port 6000 classid 1:3
holds "a filter that drops" tc filter add dev v0 parent 1: protocol ip prio 2 flower ip_proto udp dst_port 6001 action drop
send 6000 0xb8 100
same "the filter before the code point" "$(counts)" "103 12 111 30 "
send 6001 0xb8 10
same "what a filter drops does not wait" "$(counts)" "103 12 111 30 "
same "and is counted" "$(fields qdisc 1: | cut -d' ' -f3)" 10
says "as a filter's" "dropped_split 0p dropped_filter 10p" tc -s qdisc show dev v0
same "which is the only reason" "$(reasons)" 10
tc filter add dev v0 parent 1: protocol ip prio 4 flower ip_proto udp dst_port 6003 classid 1:9
send 6003 0xb8 200
same "a filter that names no class of ours: the code point" "$(counts)" "303 12 111 30 "
tc qdisc change dev v0 root handle 1: pds default 2
send 6004 0x30 100
same "another default" "$(counts)" "303 112 111 30 "
tc class change dev v0 classid 1:3 pds loss 2
send 6004 0x30 100
send 6004 0xb8 100
same "which a change of a class leaves alone" "$(counts)" "403 212 111 30 "
show tc -s -j qdisc show dev v0
clear

# skb->priority, set on the way in by a filter of the device's other side
tc qdisc add dev v0 root handle 1: pds classes 4 limit 100000 default 4 dscp EF=1 class 1 rate 0 class 2 rate 0 class 3 rate 0 class 4 rate 0
holds "a priority given before the queue" tc qdisc add dev v0 clsact
tc filter add dev v0 egress protocol ip flower ip_proto udp dst_port 6002 action skbedit priority 1:2
send 6002 0xb8 3
send 6004 0xb8 5
same "the priority before the code point" "$(counts)" "5 3 0 0 "
tc qdisc del dev v0 clsact
clear

# frames: UDP over IPv6 or IPv4, alone or behind a VLAN tag, and what is no IP
tc qdisc add dev v0 root handle 1: pds classes 4 limit 100000 default 4 dscp EF=1,AF11=2 class 1 rate 0 class 2 rate 0 class 3 rate 0 class 4 rate 0
mac=020000000002020000000001 tag=81000005 zeros=00000000000000000000000000000000 udp=2328138800080000
ipv6=0000000811"40$zeros$zeros$udp" ipv4=001c0000000040110000"0000000000000000$udp"
frame() { # frame HEX COUNT [PIECE]
	hex=$1
	shift
	traffic frame v0 "$mac$hex" "$@"
}
frame "86dd6b80$ipv6" 2
same "IPv6: its traffic class" "$(counts)" "2 0 0 0 "
frame "86dd62b0$ipv6" 4
same "whatever the two bits below say" "$(counts)" "2 4 0 0 "
frame "${tag}080045b8$ipv4" 8
same "IPv4 behind a VLAN tag" "$(counts)" "10 4 0 0 "
frame "${tag}86dd6280$ipv6" 16
same "IPv6 behind a VLAN tag" "$(counts)" "10 20 0 0 "
frame "88b56b80$ipv6" 32
same "no IP: the default" "$(counts)" "10 20 0 32 "
clear

# one super-packet of 20 pieces of 1000 bytes: 20 packets of 1042
tc qdisc add dev v0 root handle 1: htb default 1
tc class add dev v0 parent 1: classid 1:1 htb rate 1gbit
tc qdisc add dev v0 parent 1:1 handle 10: lw_pf classes 1 class 1 rate 0 limit 50
begin_count 7000
traffic super 10.0.0.2 7000 0 1 20000 1000
same "a super-packet is split" "$(fields qdisc 10: | cut -d' ' -f3-5)" "0 20840 20"
same "in the parent's counters as well" "$(fields qdisc 1: | cut -d' ' -f3-5)" "0 20840 20"
traffic super 10.0.0.2 7000 0 2 20000 1000
same "what has no room of it is dropped" "$(fields qdisc 10: | cut -d' ' -f3-5)" "10 52100 50"
same "in both counters" "$(fields qdisc 1: | cut -d' ' -f4-5)" "52100 50"
traffic super 10.0.0.2 7000 0 1 20000 1000
same "all of it" "$(fields qdisc 10: | cut -d' ' -f3-5)" "30 52100 50"
same "in the parent's as well" "$(fields qdisc 1: | cut -d' ' -f4-5)" "52100 50"
tc class change dev v0 parent 10: classid 10:1 lw_pf rate 1mbit
drained "it drains" 10:
end_count
same "the pieces arrived" "$arrived" "50"
same "the parent is empty" "$(fields qdisc 1: | cut -d' ' -f4-5)" "0 0"

# or kept whole, if so wanted: one packet, of the length of its pieces
holds "no-split-gso" tc qdisc change dev v0 parent 1:1 handle 10: lw_pf no-split-gso class 1 rate 0
says "is shown" "no-split-gso" tc qdisc show dev v0
begin_count 7000
traffic super 10.0.0.2 7000 0 1 20000 1000
same "a super-packet is one packet" "$(fields qdisc 10: | cut -d' ' -f3-5)" "30 20840 1"
agrees "for the parent, too"
# with overhead 10 each of its 20 frames has 1038 bytes
tc qdisc change dev v0 parent 1:1 handle 10: lw_pf overhead 10 class 1 limit_bytes 41599
traffic super 10.0.0.2 7000 0 1 20000 1000
same "and 20 frames on the link: there is no room for it" "$(fields qdisc 10: | cut -d' ' -f3-5)" "31 20840 1"
tc qdisc change dev v0 parent 1:1 handle 10: lw_pf class 1 limit_bytes 41600
traffic super 10.0.0.2 7000 0 1 20000 1000
same "or there just is" "$(fields qdisc 10: | cut -d' ' -f3-5)" "31 41680 2"
tc class change dev v0 parent 10: classid 10:1 lw_pf rate 1mbit limit_bytes 1mb
drained "the whole ones drain" 10:
end_count
same "their pieces arrived" "$arrived" "40"
holds "split-gso" tc qdisc change dev v0 parent 1:1 handle 10: lw_pf split-gso raw class 1 limit_bytes 1mb

# super-packets that cannot be split: marked as TCP, but of a protocol that the kernel does not know
frame "0800450000000000000040fd0000${zeros}000000005$(printf %0391d 0)" 3 100
same "what cannot be split is dropped" "$(fields qdisc 10: | cut -d' ' -f3-5)" "34 0 0"
same "and counted by reason" "$(stat dropped_split 10:1) $(stat dropped_limit 10:1)" "3p 31p"
same "by the whole qdisc as well" "$(reasons)" 34
same "the parent counts none of it as waiting" "$(fields qdisc 1: | cut -d' ' -f4-5)" "0 0"
clear

# how long a whole super-packet is on the link, to the byte: each of its frames has its headers, and fills cells of 53 bytes with 48
whole() { # whole WHAT BYTES COMMAND...: sends one of so many bytes
	what=$1 bytes=$2
	shift 2
	tc qdisc add dev v0 root handle 10: pds classes 1 no-split-gso overhead 10 atm class 1 rate 0 limit_bytes $((bytes - 1)) || fault "$what" "no qdisc"
	"$@"
	same "$what: no room for it" "$(backlog 10:) $(stat dropped_limit 10:1)" "0 1p"
	tc qdisc change dev v0 root handle 10: pds class 1 limit_bytes $bytes
	"$@"
	same "$what: or there just is" "$(backlog 10:) $(stat dropped_limit 10:1)" "1 1p"
	clear
}
# with 28 bytes of IP and UDP, frames of 1038, 1038 and 538 bytes: 22, 22 and 12 cells
whole "three frames, the last one shorter" 2968 traffic super 10.0.0.2 7000 0 1 2500 1000
# with 40 bytes of IP and TCP, frames of 110, 110, 110 and 70 bytes: 3, 3, 3 and 2 cells. Its sender does not say how many frames it is
whole "four frames, from a packet socket" 583 frame "0800450000f00000000040060000${zeros%????????????????}000000000000000000000000501000000000$(printf %0404d 0)" 1 60
unwire
