#!/usr/bin/dash
# SPDX-License-Identifier: BSD-3-Clause
#
# init of the machine that kernel_wireguard.py boots: a gateway with two paths in one network namespace, and the kernel's WireGuard,
# which knows nothing of paths, in another.
#
#                              ┌ out1 192.0.2.1    ═══ in1 192.0.2.2    ┐
#   here: gateway, 10.77.0.1   ┤                                        ├ wg0, 10.77.0.2 :there
#                              └ out2 198.51.100.1 ═══ in2 198.51.100.2 ┘
#
# It prints "ok - WHAT" or "not ok - WHAT" for each check, "ended" after the last, and switches off.
/bin/busybox --install -s /bin
export PATH=/usr/bin:/bin # Debian's ip and ping come before those of busybox
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs run /run
mkdir -p /run/netns /run/linkweir /tmp
while read -r module; do insmod "/modules/$module"; done </modules/order
echo "kernel $(uname -s -r -m)"
linkweir-gateway --version

FIRST=192.0.2.1:51820 SECOND=198.51.100.1:51820
# A peer is silent for 20 s before a path is left; a ping is sent every 0.2 s.
SILENT_MS=20500
# A path without a carrier is left at once.
CARRIER_MS=500

says() { # says WHAT PATTERN COMMAND...: a line of what it prints matches
	what=$1 pattern=$2
	shift 2
	"$@" >/tmp/out 2>&1
	if grep -q -- "$pattern" /tmp/out; then
		echo "ok - $what: $(grep -m 1 -- "$pattern" /tmp/out | tr -s '\t ' ' ')"
	else
		echo "not ok - $what"
		cat /tmp/out
	fi
}

until_says() { # until_says WHAT SECONDS PATTERN COMMAND...: the same within so many seconds
	what=$1 tries=$(($2 * 5)) pattern=$3
	shift 3
	until "$@" 2>&1 | grep -q -- "$pattern" || [ $tries -le 0 ]; do
		tries=$((tries - 1))
		sleep 0.2
	done
	says "$what" "$pattern" "$@"
}

on() { # on NAMESPACE COMMAND...
	ip netns exec "$@"
}

peer() { # what the kernel's WireGuard says of the gateway: where it sends from, when keys were made
	on there wg show wg0 "$1" | cut -f 2
}

begin_pings() {
	begun=$(cut -d ' ' -f 1 /proc/uptime)
	# not by a function, so that this is the number of ping's process
	ip netns exec here ping -D -n -i 0.2 10.77.0.2 >/tmp/pings 2>&1 &
	pings=$!
}

end_pings() { # end_pings WHAT MOST_MS: answers came with gaps of at most so many ms, those before the first and after the last added up
	ended=$(cut -d ' ' -f 1 /proc/uptime)
	kill -INT $pings
	wait $pings
	gap=$(sed -n 's/^\[\([0-9.]*\)\] 64 bytes from.*/\1/p' /tmp/pings |
		awk -v begun="$begun" -v ended="$ended" '
			NR == 1 { first = $1 }
			NR > 1 && $1 - last > most { most = $1 - last }
			{ last = $1 }
			END {
				ends = ended - begun - (last - first)
				printf("%d", NR > 1 ? 1000 * (ends > most ? ends : most) : 1e9)
			}')
	if [ "$gap" -le "$2" ]; then
		echo "ok - $1: $(grep transmitted /tmp/pings); at most $gap ms between two answers"
	else
		echo "not ok - $1: $gap ms between two answers"
		cat /tmp/pings
	fi
}

carries() { # carries WHAT: 300,000 bytes over TCP each way, unchanged
	for way in "here there 10.77.0.2" "there here 10.77.0.1"; do
		# shellcheck disable=SC2086
		set -- "$1" $way
		rm -f /tmp/open /tmp/received
		mkfifo /tmp/open # nc ends the connection when its standard input ends
		on "$3" timeout 120 nc -l -p 9000 </tmp/open >/tmp/received &
		receiver=$!
		exec 3>/tmp/open
		sleep 1
		on "$2" nc -w 60 "$4" 9000 </tmp/sent
		wait $receiver
		exec 3>&-
		says "$1, from $2 to $3" "^same" sh -c "cmp /tmp/sent /tmp/received && echo same"
	done
}

loses() { # loses WHAT: each packet of the first path from now on, and nobody is told; or none any more
	for end in "here out1" "there in1"; do
		# shellcheck disable=SC2086
		set -- "$1" $end
		on "$2" tc qdisc "$1" dev "$3" root netem loss 100%
	done
}

ip netns add here
ip netns add there
for number in 1 2; do ip link add out$number netns here type veth peer name in$number netns there; done
ip -n here address add 192.0.2.1/24 dev out1
ip -n there address add 192.0.2.2/24 dev in1
ip -n here address add 198.51.100.1/24 dev out2
ip -n there address add 198.51.100.2/24 dev in2
for number in 1 2; do
	ip -n here link set out$number up
	ip -n there link set in$number up
done

umask 077
gateway=$(linkweir-gateway keygen /etc/linkweir/key)
wg genkey >/etc/linkweir/wg.key
wireguard=$(wg pubkey </etc/linkweir/wg.key)
cat >/etc/linkweir/here.toml <<-CONFIG
	[gateway]
	device = "lw0"
	address = "10.77.0.1/24"
	listen = "0.0.0.0:51820"
	mode = "wireguard"
	private_key_file = "key"

	[link]

	[scheduler]
	policy = "pss"

	[[class]]
	name = "ef"
	match = [{ dscp = ["EF"] }]
	level = 0
	paths = "all"

	[[class]]
	name = "rest"
	level = 1
	paths = "stripe"

	[[peer]]
	name = "there"
	public_key = "$wireguard"
	allowed_ips = ["10.77.0.2/32"]

	[[peer.path]]
	name = "first"
	endpoint = "192.0.2.2:51820"
	device = "out1"
	rate = "20Mbit"

	[[peer.path]]
	name = "second"
	endpoint = "198.51.100.2:51820"
	device = "out2"
	rate = "10Mbit"
CONFIG
says "check takes the configuration" ": valid; pss with 2 classes" linkweir-gateway check /etc/linkweir/here.toml
ip -n there link add wg0 type wireguard
on there wg set wg0 private-key /etc/linkweir/wg.key listen-port 51820 peer "$gateway" allowed-ips 10.77.0.1/32
ip -n there address add 10.77.0.2/24 dev wg0
ip -n there link set wg0 mtu 1420 up
on here linkweir-gateway up /etc/linkweir/here.toml &
control=/run/linkweir/lw0.sock
head -c 300000 /dev/urandom >/tmp/sent

until_says "the tunnel opens" 30 " 1 received" on here ping -c 1 -W 1 10.77.0.2
says "20 pings with DSCP EF are answered" "20 packets transmitted, 20 received" on here ping -c 20 -i 0.2 -Q 0xb8 10.77.0.2
carries "300,000 bytes over TCP"
says "the peer sends over the first path" "^$FIRST" peer endpoints
says "the gateway knows that the peer has not agreed to paths" '"paths_agreed": *false' linkweir-gateway show --json --control $control

# The first path has no carrier.
begin_pings
sleep 2
ip -n there link set in1 down
until_says "without a carrier the second path is used" 1 "^$SECOND" peer endpoints
carries "over the second path"
ip -n there link set in1 up
until_says "when the carrier has been back for failback, 10 s, the first is used" 15 "^$FIRST" peer endpoints
sleep 2
end_pings "packets pass when the carrier goes and comes" $CARRIER_MS

# The first path loses everything, until after the keys have changed.
begin_pings
sleep 2
loses add
until_says "when the first path is silent the second is used" 25 "^$SECOND" peer endpoints
carries "over the second path while the first is silent"
keys=$(peer latest-handshakes)
tries=200
while [ "$(peer latest-handshakes)" = "$keys" ] && [ $tries -gt 0 ]; do
	tries=$((tries - 1))
	sleep 1
done
later=$(($(peer latest-handshakes) - keys))
says "keys are renewed over the second path" "^[1-9][0-9]* s later" echo "$later s later"
sleep 5
end_pings "packets pass when the first path falls silent, and keys change" $SILENT_MS
loses del
begin_pings
sleep 30
says "a path that carries again is not used by itself" "^$SECOND" peer endpoints
tries=100
while [ "$(peer endpoints)" != $FIRST ] && [ $tries -gt 0 ]; do
	# A probe that comes between the two has the peer send over the second once more.
	on there wg set wg0 peer "$gateway" endpoint $FIRST
	on there ping -c 1 -W 1 10.77.0.1 >/dev/null
	sleep 0.2
	tries=$((tries - 1))
done
sleep 5
says "it is when the peer sends over it" "^$FIRST" peer endpoints
carries "over the first path again"
end_pings "packets pass meanwhile" $CARRIER_MS

# shellcheck disable=SC2046
kill $(pidof linkweir-gateway)
sleep 3
echo "ended after $(cut -d' ' -f1 /proc/uptime) s"
poweroff -f
