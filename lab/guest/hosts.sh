#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# hosts.sh - sets up four hosts in a row; jobs source it. The ends of wire NET have addresses 10.0.NET.1 and 10.0.NET.2.
#
#   sender s0 ---1--- r0 router r1 ---2--- y0 relay y1 ---3--- d0 receiver
set -e
for host in sender router relay receiver; do ip netns add $host; done
wire() { # wire HOST DEVICE HOST DEVICE NET
	ip link add $2 netns $1 type veth peer name $4 netns $3
	end $1 $2 $5.1 02:00:00:00:0$6:01
	end $3 $4 $5.2 02:00:00:00:0$6:02
	ip -n $1 neigh replace $5.2 lladdr 02:00:00:00:0$6:02 dev $2 nud permanent
	ip -n $3 neigh replace $5.1 lladdr 02:00:00:00:0$6:01 dev $4 nud permanent
}
end() { # end HOST DEVICE ADDRESS MAC: without ARP and super-packets
	ip -n $1 link set $2 address $4 arp off gso_max_segs 1 txqueuelen 1000
	ip -n $1 addr add $3/24 dev $2
	ip -n $1 link set $2 up
}
wire sender s0 router r0 10.0.1 1
wire router r1 relay y0 10.0.2 2
wire relay y1 receiver d0 10.0.3 3
ip -n sender route add default via 10.0.1.2
ip -n router route add 10.0.3.0/24 via 10.0.2.2
ip -n relay route add 10.0.1.0/24 via 10.0.2.1
ip -n receiver route add default via 10.0.3.1
# the receiver's second address: the sender's connections to it ask for ECN, others do not
ip -n receiver addr add 10.0.3.3/24 dev d0
ip -n relay neigh replace 10.0.3.3 lladdr 02:00:00:00:03:02 dev y1 nud permanent
ip -n sender route add 10.0.3.3 via 10.0.1.2 features ecn
in_() { host=$1; shift; ip netns exec $host "$@"; }
for host in router relay; do in_ $host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'; done
for host in sender receiver; do
	for key in tcp_rmem tcp_wmem; do in_ $host sh -c "echo 4096 131072 67108864 >/proc/sys/net/ipv4/$key"; done
done
