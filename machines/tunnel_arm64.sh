#!/usr/bin/dash
# SPDX-License-Identifier: BSD-3-Clause
#
# init of the machine that tunnel_arm64.py boots: two gateways in two network namespaces, and what goes through their tunnel.
#
#   ground: 192.0.2.1, in the tunnel 10.77.0.1 ------------- ship: 192.0.2.2, in the tunnel 10.77.0.2
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
echo "kernel $(uname -s -r -m), at $(date -u +%FT%TZ)"
linkweir-gateway --version

says() { # says WHAT PATTERN COMMAND...: a line of what it prints matches
	what=$1 pattern=$2
	shift 2
	"$@" >/tmp/out 2>&1
	if grep -q -- "$pattern" /tmp/out; then
		echo "ok - $what: $(grep -m 1 -- "$pattern" /tmp/out | tr -s ' ')"
	else
		echo "not ok - $what"
		cat /tmp/out
	fi
}

opens() { # the ship answers within a minute
	for _ in $(seq 60); do
		on ground ping -c 1 -W 1 10.77.0.2 && return
	done
}

on() { # on NAMESPACE COMMAND...
	ip netns exec "$@"
}

processes() {
	pidof linkweir-gateway || echo none
}

configure() { # configure NAME NUMBER OTHER OTHER'S-NUMBER OTHER'S-KEY
	cat >"/etc/linkweir/$1.toml" <<-CONFIG
		[gateway]
		device = "$1"
		address = "10.77.0.$2/24"
		listen = "192.0.2.$2:51820"
		mode = "wireguard"
		private_key_file = "$1.key"

		[link]
		rate = "20Mbit"

		[scheduler]
		policy = "pss"

		[[class]]
		name = "ef"
		match = [{ dscp = ["EF"] }]
		level = 0

		[[class]]
		name = "rest"
		level = 1
		limit = "200ms"

		[[peer]]
		name = "$3"
		public_key = "$5"
		endpoint = "192.0.2.$4:51820"
		allowed_ips = ["10.77.0.$4/32"]
	CONFIG
}

ip netns add ground
ip netns add ship
ip link add v0 netns ground type veth peer name v1 netns ship
ip -n ground address add 192.0.2.1/24 dev v0
ip -n ship address add 192.0.2.2/24 dev v1
ip -n ground link set v0 up
ip -n ship link set v1 up

umask 077
ground=$(linkweir-gateway keygen /etc/linkweir/ground.key)
ship=$(linkweir-gateway keygen /etc/linkweir/ship.key)
configure ground 1 ship 2 "$ship"
configure ship 2 ground 1 "$ground"
says "check takes the configuration" ": valid; pss with 2 classes" linkweir-gateway check /etc/linkweir/ground.toml

on ground linkweir-gateway up /etc/linkweir/ground.toml &
sleep 3
says "without the ship's gateway no ping is answered" " 0 received" on ground ping -c 3 -W 1 10.77.0.2
on ship linkweir-gateway up /etc/linkweir/ship.toml &
says "the tunnel opens" " 1 received" opens
says "pings with DSCP EF are answered" "20 packets transmitted, 20 received" on ground ping -c 20 -i 0.2 -Q 0xb8 10.77.0.2
says "class ef sent them" "^ *ef  *[^ ]*  *0  *20 " linkweir-gateway show --control /run/linkweir/ground.sock

head -c 2000000 /dev/urandom >/tmp/sent
# nc ends the connection when its standard input ends
mkfifo /tmp/open
on ship timeout 120 nc -l -p 9000 </tmp/open >/tmp/received &
receiver=$!
exec 3>/tmp/open
sleep 2
on ground nc -w 60 10.77.0.2 9000 </tmp/sent
wait $receiver
says "2,000,000 bytes arrive over TCP" "^2000000 " wc -c /tmp/received
says "unchanged" "^same" sh -c "cmp /tmp/sent /tmp/received && echo same"
says "the gateway shows them" "^ *rest  *[^ ]*  *0  *[0-9]*  *2[0-9]\{6\} " linkweir-gateway show --control /run/linkweir/ground.sock
cat /tmp/out

# shellcheck disable=SC2046
kill $(pidof linkweir-gateway)
sleep 2
says "the gateways end when asked" "^none" processes
echo "ended after $(cut -d' ' -f1 /proc/uptime) s"
poweroff -f
