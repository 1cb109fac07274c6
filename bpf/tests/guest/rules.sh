# SPDX-License-Identifier: GPL-2.0-only
# rules.sh - classes by ports, protocols and marks of the firewall: frames whose class is known.
. /guest/bpf.sh

wire
cat >/tmp/rules.toml <<END
link = { rate = "20Mbit" }
scheduler = { policy = "rr" }
[[class]]
name = "voice"
match = [{ protocol = "udp", port = "5060-5061" }, { dscp = "EF" }]
[[class]]
name = "names"
match = [{ protocol = ["tcp", "udp", "sctp"], destination_port = 53 }, { source_port = 123, order = 1 }]
mark = [7, 0x80000000]
[[class]]
name = "ping"
match = [{ protocol = "icmp" }, { protocol = 136, port = 9 }]
[[class]]
name = "rest"
END
holds "add" linkweir-bpf add v0 /tmp/rules.toml
mac=020000000002020000000001 a=0a000001 b=0a000002
six=fd000000000000000000000000000001fd000000000000000000000000000002
count() { # of the last look: packets that were sent or wait
	for class in voice names ping rest; do printf '%s ' "$(($(sent $class) + $(waiting $class)))"; done
}
frame() { traffic frame v0 "$mac$1" "$2"; }
# ipv4 TOS PROTOCOL FRAGMENT OPTIONS PAYLOAD COUNT: OPTIONS is a number of words of 4 bytes, all 0
ipv4() {
	options=
	for word in $(seq "$4"); do options="${options}00000000"; done
	frame "0800$(printf 4%x $((5 + $4)))$1$(printf %04x $((20 + 4 * $4 + ${#5} / 2)))0000$3""40$2""0000$a$b$options$5" "$6"
}
# ipv6 CLASS NEXT PAYLOAD COUNT
ipv6() { frame "86dd6$1""00000$(printf %04x $((${#3} / 2)))$2""40$six$3" "$4"; }
voice=0 names=0 ping=0 rest=0
expect() { # expect WHAT VOICE NAMES PING REST: packets more than before
	what=$1
	shift
	voice=$((voice + $1)) names=$((names + $2)) ping=$((ping + $3)) rest=$((rest + $4))
	look
	same "$what" "$(count)" "$voice $names $ping $rest "
}
sip=13c4 web=0050 dns=0035 ntp=007b any=d431 zeros=0000000000000000
ipv4 00 11 0000 0 "$any$sip$zeros" 1
ipv4 00 11 0000 0 "$sip$any$zeros" 1
ipv4 00 11 0000 0 "13c5$any$zeros" 1
ipv4 00 11 0000 0 "13c6$any$zeros" 1
ipv4 00 06 0000 0 "$any$sip$zeros" 1
expect "a range of ports at either end, of one protocol" 3 0 0 2
ipv4 b8 06 0000 0 "$any$web$zeros" 1
ipv4 b8 06 0000 0 "$any$dns$zeros" 1
ipv4 00 06 0000 0 "$any$dns$zeros" 1
ipv4 00 84 0000 0 "$any$dns$zeros" 1
ipv4 00 11 0000 0 "$dns$any$zeros" 1
ipv4 00 88 0000 0 "$any$dns$zeros" 1
expect "the first rule counts; a port of the receiver" 2 2 0 2
ipv4 00 11 0000 0 "$ntp$any$zeros" 1
ipv4 00 11 0000 0 "$ntp$sip$zeros" 1
ipv4 00 11 0000 0 "$any$ntp$zeros" 1
expect "a port of the sender, and a rule with a higher order" 1 1 0 1
ipv4 00 01 0000 0 "0800$zeros" 1
ipv6 00 3a "8000$zeros" 1
ipv4 00 88 0000 0 "${any}0009$zeros" 1
ipv4 00 32 0000 0 "${any}0009$zeros" 1
expect "protocols; one without ports that has these bytes" 0 0 3 1
ipv4 00 11 0000 10 "$any$sip$zeros" 1
ipv4 00 11 2000 0 "$any$sip$zeros" 1
ipv4 00 11 2001 0 "$any$sip$zeros" 1
ipv4 b8 11 0001 0 "$any$any$zeros" 1
expect "options; a first fragment, and later ones, which have no ports" 3 0 0 1
ipv6 00 11 "$any$sip$zeros" 1
ipv6 b8 06 "$any$web$zeros" 1
ipv6 00 00 "1101$zeros$zeros$zeros" 1
ipv6 00 00 "3c00010400000000""1100000000000000$any$dns$zeros" 1
ipv6 00 2c "1100000100000001$any$sip$zeros" 1
ipv6 00 2c "1100000900000001$any$sip$zeros" 1
ipv6 00 33 "1101000000000000""00000000$any$sip$zeros" 1
expect "IPv6, with extension headers and fragments" 4 1 0 2
frame "88b545000000$zeros$zeros$any$sip$zeros$zeros" 1
expect "no IP" 0 0 0 1
ipv4 00 11 0000 0 "$any" 1
ipv4 00 11 0000 0 "" 1
expect "a packet that ends before its ports" 0 0 0 2
frame "0800440000200000000040110000${a}13c40002$any$any$zeros" 1
expect "an IPv4 header that is too short, with a port's number as its address" 0 0 0 1
ipv6 00 00 "3a00000000000000" 1
ipv6 00 00 "3a01000000000000" 1
ipv6 00 33 "3a01000000000000""00000000" 1
ipv6 00 33 "3a02000000000000""00000000" 1
expect "an extension header that ends with the packet, and one that would end after it" 0 0 2 2
seven=3c000104000000003c000104000000003c000104000000003c00010400000000
seven=${seven}3c000104000000003c000104000000003c00010400000000
ipv6 00 3c "${seven}1100010400000000$any$sip$zeros" 1
ipv6 00 3c "${seven}3c000104000000001100010400000000$any$sip$zeros" 1
expect "eight extension headers, and nine" 1 0 0 1

holds "marks" tc qdisc add dev v0 clsact
mark() { # mark MARK FRAME...: its packets have it
	tc filter add dev v0 egress pref 1 matchall action skbedit mark "$1"
	shift
	"$@"
	tc filter del dev v0 egress pref 1
}
mark 7 ipv4 b8 11 0000 0 "$any$sip$zeros" 1
mark 0x80000000 frame "88b545000000$zeros$zeros$any$sip$zeros$zeros" 1
mark 0x80000007 ipv4 b8 11 0000 0 "$any$sip$zeros" 1
mark 8 ipv4 00 11 0000 0 "$any$web$zeros" 1
tc qdisc del dev v0 clsact
expect "a mark comes before all rules" 1 2 0 1
sed -i 's/^match.*5060.*/match = [{ dscp = "EF" }]/; s/^match.*53.*/match = []/; s/^match.*icmp.*/match = [{ dscp = "CS1" }]/' /tmp/rules.toml
holds "a change to code points, with marks" linkweir-bpf change v0 /tmp/rules.toml
ipv4 b8 11 0000 0 "$any$sip$zeros" 1
ipv4 00 11 0000 0 "$any$sip$zeros" 1
ipv4 20 11 0000 0 "$any$dns$zeros" 1
ipv4 00 11 0000 0 "$any$dns$zeros" 1
expect "ports are not asked for now" 1 0 1 2
same "no fault" "$(grep FAULT /tmp/show)" ""
holds "del" linkweir-bpf del v0
unwire
