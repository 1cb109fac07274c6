#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# hosts.sh - sets up four hosts in a row; jobs source it. The ends of wire NET have addresses 10.0.NET.1 and 10.0.NET.2.
#
#   sender s0 ---1--- r0 router r1 ---2--- y0 relay y1 ---3--- d0 receiver
. /guest/wires.sh
for host in sender router relay receiver; do ip netns add $host; done
wire sender s0 router r0 10.0.1 01
wire router r1 relay y0 10.0.2 02
wire relay y1 receiver d0 10.0.3 03
ip -n sender route add default via 10.0.1.2
ip -n router route add 10.0.3.0/24 via 10.0.2.2
ip -n relay route add 10.0.1.0/24 via 10.0.2.1
ip -n receiver route add default via 10.0.3.1
# the receiver's second address: the sender's connections to it ask for ECN, others do not
ip -n receiver addr add 10.0.3.3/24 dev d0
ip -n relay neigh replace 10.0.3.3 lladdr 02:00:00:00:03:02 dev y1 nud permanent
ip -n sender route add 10.0.3.3 via 10.0.1.2 features ecn
forward router relay
windows sender receiver
