#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# wires.sh - joins hosts by wires; jobs source it. The ends of a wire have addresses PREFIX.1 and PREFIX.2.
set -e
wire() { # wire HOST DEVICE HOST DEVICE PREFIX NUMBER, in two hexadecimal digits
	ip link add $2 netns $1 type veth peer name $4 netns $3
	end $1 $2 $5.1 02:00:00:00:$6:01
	end $3 $4 $5.2 02:00:00:00:$6:02
	ip -n $1 neigh replace $5.2 lladdr 02:00:00:00:$6:02 dev $2 nud permanent
	ip -n $3 neigh replace $5.1 lladdr 02:00:00:00:$6:01 dev $4 nud permanent
}
end() { # end HOST DEVICE ADDRESS MAC: without ARP and super-packets
	ip -n $1 link set $2 address $4 arp off gso_max_segs 1 txqueuelen 1000
	ip -n $1 addr add $3/24 dev $2
	ip -n $1 link set $2 up
}
in_() { host=$1; shift; ip netns exec $host "$@"; }
forward() { # forward HOST...: they pass packets on
	for host; do in_ $host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'; done
}
windows() { # windows HOST...: the windows of their TCP connections grow to 64 MiB
	for host; do
		for key in tcp_rmem tcp_wmem; do in_ $host sh -c "echo 4096 131072 67108864 >/proc/sys/net/ipv4/$key"; done
	done
}
