# SPDX-License-Identifier: BSD-3-Clause
#
# The two benchmark cases in ns-2.35: `ns dumbbell.tcl -case geo|many [-duration 100] [-hosts 0|1]`.
#
#   senders of a class -- 1 Gbit/s, 1 ms -- r0 == bottleneck == r1 -- 1 Gbit/s, 1 ms -- receivers of a class     hosts 1
#                                senders on r0 == bottleneck == r1 with the receivers                            hosts 0
#
# One host per class and side, not per flow: the packets take the same three hops, and ns-2 spends no time on routes.
#
# geo   20 Mbit/s, RTT 500 ms, EF CBR 10 Mbit/s, 10 + 10 CUBIC flows in AF and CS0;
#       CBQ/WRR: EF priority 1, AF and CS0 priority 2 with equal weights, drop-tail queues of 500 packets each.
# many  50 Mbit/s, RTT 160 ms, 100 CUBIC flows, one drop-tail queue of 1000 packets.
#
# Every packet has 1500 bytes, every ACK 40; receivers acknowledge each packet; no trace is written.
# Prints one line of JSON. "packets" are departures at the bottleneck, "mbps" their bytes over the duration.

array set option {-case geo -duration 100 -hosts 1}
foreach {name value} $argv {
	if {![info exists option($name)]} {
		puts stderr "dumbbell.tcl: unknown option $name; known: [lsort [array names option]]"
		exit 2
	}
	set option($name) $value
}
set duration $option(-duration)
set hosts $option(-hosts)

# name, fid, flows, kind, limit_pkts
switch -- $option(-case) {
	geo {
		set bottleneck_bps 20e6
		set rtt_s 0.5
		set classes {{ef 1 1 cbr 500} {af 2 10 tcp 500} {cs0 3 10 tcp 500}}
	}
	many {
		set bottleneck_bps 50e6
		set rtt_s 0.16
		set classes {{tcp 1 100 tcp 1000}}
	}
	default {
		puts stderr "dumbbell.tcl: -case must be geo or many"
		exit 2
	}
}
set packet_bytes 1500
set header_bytes 40
set cbr_bps 10e6
set stagger_s 0.1
set access_bps 1e9
set access_delay_s [expr {$hosts ? 0.001 : 0}]

# Packets carry only the headers in use: the memory and the time of a packet depend on it.
remove-all-packet-headers
add-packet-header IP TCP Flags RTP

set ns [new Simulator]
Agent/UDP set packetSize_ $packet_bytes
Agent/TCP set window_ 50000
Agent/TCP set packetSize_ [expr {$packet_bytes - $header_bytes}]
Agent/TCP set tcpip_base_hdr_size_ $header_bytes
Agent/TCPSink set packetSize_ $header_bytes

set r0 [$ns node]
set r1 [$ns node]
set delay_s [expr {$rtt_s / 2 - 2 * $access_delay_s}]
if {$option(-case) eq "geo"} {
	$ns simplex-link $r0 $r1 $bottleneck_bps ${delay_s}s CBQ/WRR
	set cbq [$ns link $r0 $r1]
	set top [new CBQClass]
	$top setparams none false 1.0 auto 8 2 0
	$cbq insert $top
	foreach class $classes {
		foreach {name fid flows kind limit} $class break
		set queue [new Queue/DropTail]
		$queue set limit_ $limit
		set leaf [new CBQClass]
		if {$kind eq "cbr"} {
			$leaf setparams $top true 0.5 auto 1 1 0
		} else {
			$leaf setparams $top true 0.25 auto 2 1 0
		}
		$leaf install-queue $queue
		set monitor($name) [new QueueMonitor]
		$cbq insert $leaf $monitor($name)
		$cbq bind $leaf $fid
	}
} else {
	$ns simplex-link $r0 $r1 $bottleneck_bps ${delay_s}s DropTail
	$ns queue-limit $r0 $r1 [lindex [lindex $classes 0] 4]
	set monitor(tcp) [$ns monitor-queue $r0 $r1 ""]
}
$ns simplex-link $r1 $r0 $access_bps ${delay_s}s DropTail
$ns queue-limit $r1 $r0 100000

proc host {router} {
	global ns hosts access_bps access_delay_s
	if {!$hosts} {
		return $router
	}
	set node [$ns node]
	$ns duplex-link $node $router $access_bps ${access_delay_s}s DropTail
	$ns queue-limit $node $router 100000
	$ns queue-limit $router $node 100000
	return $node
}

foreach class $classes {
	foreach {name fid flows kind limit} $class break
	set from [host $r0]
	set to [host $r1]
	for {set i 0} {$i < $flows} {incr i} {
		if {$kind eq "cbr"} {
			set agent [new Agent/UDP]
			set sink [new Agent/Null]
			set source [new Application/Traffic/CBR]
			$source set packetSize_ $packet_bytes
			$source set rate_ $cbr_bps
			$source set random_ 0
		} else {
			set agent [new Agent/TCP/Linux]
			set sink [new Agent/TCPSink/Sack1]
			set source [new Application/FTP]
		}
		$agent set fid_ $fid
		$ns attach-agent $from $agent
		$ns attach-agent $to $sink
		$ns connect $agent $sink
		$source attach-agent $agent
		if {$kind eq "tcp"} {
			$ns at 0 "$agent select_ca cubic"
		}
		$ns at [expr {$i * $stagger_s}] "$source start"
	}
}

proc finish {} {
	global classes monitor duration bottleneck_bps option
	set total 0
	set rows {}
	foreach class $classes {
		foreach {name fid flows kind limit} $class break
		set packets [expr {int([$monitor($name) set pdepartures_])}]
		set dropped [expr {int([$monitor($name) set pdrops_])}]
		set mbps [expr {[$monitor($name) set bdepartures_] * 8.0 / $duration / 1e6}]
		lappend rows [format {{"class": "%s", "mbps": %.3f, "packets": %d, "dropped": %d}} $name $mbps $packets $dropped]
		incr total $packets
	}
	puts [format {{"simulator": "ns-2", "case": "%s", "duration_s": %g, "packets": %d, "events": null, "classes": [%s]}} \
		$option(-case) $duration $total [join $rows ", "]]
	exit 0
}
$ns at $duration finish
$ns run
