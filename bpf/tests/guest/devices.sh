# SPDX-License-Identifier: GPL-2.0-only
# devices.sh - several devices, devices with several queues, places that the kernel refuses, 64 classes, and what follows a link.
. /guest/bpf.sh

wire 4
settings strict 2Mbit ''
ip link add d0 type dummy
ip link set d0 up
holds "one device" linkweir-bpf add d0 /tmp/strict.toml
kind=$(tc qdisc show dev d0 root | cut -d' ' -f2)
refused "its discipline on another one" "Device or resource busy" tc qdisc add dev v0 root "$kind"
holds "mq" tc qdisc add dev v0 root handle 1: mq
refused "below mq" "" tc qdisc add dev v0 parent 1:1 handle 10: "$kind"
tc qdisc show dev v0 | sed 's/^/# /'
refused "add where the root is taken" "has the root mq 1: already" linkweir-bpf add v0 /tmp/strict.toml
tc qdisc del dev v0 root
holds "tbf" tc qdisc add dev v0 root handle 1: tbf rate 10mbit burst 10k limit 100k
refused "below tbf" "only supported on root or mq" tc qdisc add dev v0 parent 1:1 handle 10: "$kind"
tc qdisc del dev v0 root
settings pss 2Mbit "$(reserve 800kbit)"
holds "one scheduler for four transmission queues" linkweir-bpf add v0 /tmp/pss.toml
says "is the root" " root " tc qdisc show dev v0
begin_flows
sleep 1
rates 3
# within a burst of 20 packets over the time
within "AF gets its reservation, kbit/s" "$af" 753 847
quiet_flows
conserved "four queues"
linkweir-bpf show d0 >/tmp/show
same "the other device saw none of it" "$(sent ef) $(sent af) $(sent be)" "0 0 0"
holds "del of one" linkweir-bpf del d0
look
sound "the other stays"

# the capacity from a stream of reports
printf '1.5Mbit\n1.2Mbit\nbroken\n900kbit\n' | linkweir-bpf follow v0 2>/tmp/message
same "follow goes past a line that is wrong" "$?" 0
says "and says so" "broken: " cat /tmp/message
traffic send 10.0.0.2 5003 0 1 158 0
look
says "the last report is in force" "link 900kbit" cat /tmp/show
holds "del" linkweir-bpf del v0

{
	printf '[link]\nrate = "20Mbit"\n[scheduler]\npolicy = "pss"\n'
	for n in $(seq 0 62); do
		printf '[[class]]\nname = "c%s"\nmatch = [{ dscp = %s }]\nlimit = "20p"\n' "$n" "$((n + 1))"
		if [ $((n % 2)) = 1 ]; then printf 'rate = "100kbit"\nlow_level = %s\n' "$((100 + n))"; fi
	done
	printf '[[class]]\nname = "rest"\nlimit = "20p"\n'
} >/tmp/many.toml
holds "64 classes of pss" linkweir-bpf add v0 /tmp/many.toml
for n in $(seq 0 62); do traffic send 10.0.0.2 5003 $(((n + 1) * 4)) 1 158 0; done
traffic send 10.0.0.2 5003 0 1 158 0
sed -i 's/100kbit/200kbit/' /tmp/many.toml
holds "a change of all" linkweir-bpf change v0 /tmp/many.toml
for n in $(seq 0 62); do traffic send 10.0.0.2 5003 $(((n + 1) * 4)) 1 158 0; done
sleep 0.2
look
same "each class sent its packets" "$(grep -c 'sent 400 bytes 2 pkt' /tmp/show)" 63
sound "64 classes"
holds "del of 64" linkweir-bpf del v0
unwire
ip link del d0
