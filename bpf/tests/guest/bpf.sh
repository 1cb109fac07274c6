# SPDX-License-Identifier: GPL-2.0-only
# bpf.sh - functions of these scripts, with those of kernel/tests/guest/checks.sh.
#
# The classes are EF (1 Mbit/s offered), AF (6 Mbit/s offered, 4 reserved) and BE (20 Mbit/s offered).
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

of() { # of CLASS FIELD: of `show`; FIELD is the word before the value
	linkweir-bpf show v0 | awk -v class="  $1:" -v word="$2" 'index($0, class) == 1 { for (i = 1; i < NF; i++) if ($i == word) { print $(i + 1); exit } }'
}
used() { linkweir-bpf show v0 | awk 'NR == 1 { for (i = 1; i < NF; i++) if ($i == "of") { print $(i - 1); exit } }'; }
is_empty() { [ "$(used)" = 0 ]; }

flow() { # flow PORT TOS BYTES PAUSE_US: a sender until quiet_flows
	traffic send 10.0.0.2 "$1" "$2" 0 "$3" "$4" >/tmp/sent."$1" &
	senders="$senders $!"
}
begin_flows() {
	begin_measure 5001 5002 5003
	flow 5001 0xb8 158 1600 # 200 bytes on the device
	flow 5002 0x28 958 1333 # 1000 bytes
	flow 5003 0 958 400
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
	linkweir-bpf show v0 >/tmp/before
	t0=$(awk '{ print $1 * 1000 }' /proc/uptime)
	sleep "$1"
	linkweir-bpf show v0 >/tmp/after
	t1=$(awk '{ print $1 * 1000 }' /proc/uptime)
	for class in ef af be; do
		sent=$(awk -v class="  $class:" 'index($0, class) == 1 { print $3 }' /tmp/before /tmp/after | paste -s -d' ')
		eval "$class=$(((${sent#* } - ${sent% *}) * 8 / (t1 - t0)))"
	done
	echo "# kbit/s: ef $ef af $af be $be over $((t1 - t0)) ms"
}
conserved() { # after quiet_flows: all that was sent arrived or was dropped, by the discipline's counters
	linkweir-bpf show v0 | sed 's/^/# /'
	for class in "ef 5001" "af 5002" "be 5003"; do
		set -- $class
		sent=$(cat /tmp/sent."$2") arrived=$(awk -v port="$2" '$1 == port { print $2 }' /tmp/count)
		dropped=$(of "$1" limit)
		same "$1: sent $sent = arrived $arrived + dropped $dropped" "$sent" "$((arrived + dropped))"
	done
	same "no packet without a place" "$(linkweir-bpf show v0 | grep -c FAULT)" 0
}
slabs() { awk '/^skbuff_head_cache|^skbuff_small_head|^skbuff_fclone_cache/ { n += $2 } END { print n }' /proc/slabinfo; }
