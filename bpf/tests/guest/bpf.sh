# SPDX-License-Identifier: GPL-2.0-only
# bpf.sh - functions of these scripts, with those of kernel/tests/guest/checks.sh.
#
# The classes are EF (198 kbit/s offered), AF (1.19 Mbit/s offered) and BE (3.9 Mbit/s offered).
. /guest/checks.sh

settings() { # settings POLICY RATE AF: writes /tmp/POLICY.toml; AF are more lines of the class AF
	cat >/tmp/"$1".toml <<END
[link]
rate = "$2"
[scheduler]
policy = "$1"
[[class]]
name = "ef"
match = [{ dscp = "EF" }]
limit = "100p"
[[class]]
name = "af"
match = [{ dscp = "AF11" }]
limit = "100p"
$3
[[class]]
name = "be"
limit = "100p"
END
}
reserve() { # reserve RATE: the lines for it
	echo "rate = \"$1\""
	echo "low_level = 4"
}

# The loader verifies its program each time, so what it showed is read often and made seldom.
look() { linkweir-bpf show v0 >/tmp/show; }
of() { # of CLASS FIELD: of the last look; FIELD is the word before the value
	awk -v class="  $1:" -v word="$2" 'index($0, class) == 1 { for (i = 1; i < NF; i++) if ($i == word) { print $(i + 1); exit } }' /tmp/show
}
waiting() { # waiting CLASS: packets
	awk -v class="  $1:" 'index($0, class) == 1 { for (i = 1; i < NF; i++) if ($i == "backlog") { print $(i + 3); exit } }' /tmp/show
}
sent() { # sent CLASS: packets
	awk -v class="  $1:" 'index($0, class) == 1 { print $5; exit }' /tmp/show
}
dropped() { # dropped CLASS: packets, for all reasons
	awk -v class="  $1:" 'index($0, class) == 1 { sub(/.*dropped /, ""); for (i = 2; i <= NF; i += 2) sum += $i; print sum; exit }' /tmp/show
}
is_empty() { tc -s qdisc show dev v0 root | grep -q 'backlog 0b 0p'; }
sound() { # sound WHAT: no fault in the last look
	same "$1: no fault" "$(grep FAULT /tmp/show)" ""
}

flow() { # flow PORT TOS BYTES PAUSE_US: a sender until quiet_flows
	traffic send 10.0.0.2 "$1" "$2" 0 "$3" "$4" >/tmp/sent."$1" &
	senders="$senders $!"
}
begin_flows() {
	begin_measure 5001 5002 5003
	flow 5001 0xb8 158 8000 # 200 bytes on the device
	flow 5002 0x28 958 6666 # 1000 bytes
	flow 5003 0 958 2000
}
quiet_flows() {
	quiet
	waits "it drains" is_empty
	sleep 0.2
	kill "$counter"
	wait "$counter"
	sed 's/^/# arrived: /' /tmp/count
}

rates() { # rates SECONDS: sets ef, af and be, in kbit/s
	look
	before="$(of ef sent) $(of af sent) $(of be sent)"
	t0=$(awk '{ print $1 * 1000 }' /proc/uptime)
	sleep "$1"
	look
	t1=$(awk '{ print $1 * 1000 }' /proc/uptime)
	set -- $before "$(of ef sent)" "$(of af sent)" "$(of be sent)"
	ef=$((($4 - $1) * 8 / (t1 - t0))) af=$((($5 - $2) * 8 / (t1 - t0))) be=$((($6 - $3) * 8 / (t1 - t0)))
	echo "# kbit/s: ef $ef af $af be $be over $((t1 - t0)) ms"
}
conserved() { # conserved WHAT, after quiet_flows: all packets that were sent arrived or were dropped, by the discipline's counters
	look
	sed 's/^/# /' /tmp/show
	for class in "ef 5001" "af 5002" "be 5003"; do
		set -- $class "$1"
		sent=$(cat /tmp/sent."$2") arrived=$(awk -v port="$2" '$1 == port { print $2 }' /tmp/count)
		dropped=$(dropped "$1")
		same "$3: $1: sent $sent = arrived $arrived + dropped $dropped" "$sent" "$((arrived + dropped))"
		set -- "$3"
	done
	bytes=$(($(of ef sent) + $(of af sent) + $(of be sent)))
	says "$1: tc counts the same bytes" " Sent $bytes bytes " tc -s qdisc show dev v0 root
	sound "$1"
}
slabs() { awk '/^skbuff_head_cache|^skbuff_small_head|^skbuff_fclone_cache/ { n += $2 } END { print n }' /proc/slabinfo; }

# of scripts that remove a discipline with settings of 20 packets for each of three classes
fill() { for tos in 0xb8 0x28 0; do traffic send 10.0.0.2 5009 $tos 24 958 0; done; }
round() { # round HOW: fills the queues, then removes the discipline; tc makes it again, as `kind`, from what the loader pinned
	fill
	full=$(tc -s qdisc show dev v0 root | grep -c 'backlog [0-9]*b \(60\|59\|58\)p')
	[ "$full" = 1 ] || fault "$1" "is not full: $(tc -s qdisc show dev v0 root)"
	case $1 in
	del) tc qdisc del dev v0 root ;;
	replace) tc qdisc replace dev v0 root pfifo && tc qdisc del dev v0 root ;;
	down) ip link set v0 down && ip link set v0 up && tc qdisc del dev v0 root ;;
	away) unwire && wire ;;
	esac
	tc qdisc add dev v0 root "$kind"
}
rounds() { # rounds WHAT COUNT COMMAND...: what is left of it, in packets
	what=$1 count=$2
	shift 2
	sleep 1
	before=$(slabs)
	for n in $(seq "$count"); do "$@" || fault "$what" "round $n failed"; done
	sleep 1
	after=$(slabs)
	echo "# $what: $before packets in slabs before, $after after $count rounds of 60"
	if [ $((after - before)) -le 60 ]; then pass "$what: none is left"; else fault "$what" "$((after - before)) are left"; fi
}
