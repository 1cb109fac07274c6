# SPDX-License-Identifier: GPL-2.0-only
# fuzz.sh - netlink messages of all kinds, valid and invalid, with packets in between.
. /guest/checks.sh
wire
steady
messages=2000
grep -q checks=full /proc/cmdline && messages=120000
[ -e /guest/messages ] && messages=$(cat /guest/messages)
dmesg -c >/dev/null
fuzz v0 10.0.0.2 1 $messages $(cat /guest/kinds) >/tmp/fuzz 2>&1
sed 's/^/# /' /tmp/fuzz
counts() { awk -v name="$1" '$1 == "sent" { for (i = 1; i < NF; i += 2) if ($i == name) print $(i + 1) }' /tmp/fuzz; }
same "all were answered" "$(counts sent)" $messages
if [ "$(counts accepted)" -gt $((messages / 5)) ]; then pass "many were accepted"; else fault "many were accepted" "$(cat /tmp/fuzz)"; fi
if [ "$(counts refused)" -gt $((messages / 5)) ]; then pass "many were refused"; else fault "many were refused" "$(cat /tmp/fuzz)"; fi
same "each refusal says why" "$(counts mute)" 0
same "and names an attribute" "$(counts nameless)" 0
# netlink's own warnings about attributes that are cut off or of a wrong length, and how many it suppressed
same "nothing else is in the log" "$(dmesg | grep -Ev '^(\[ *[0-9.]+\] )?(netlink|__nla_validate_parse|validate_nla): ')" ""
clear
holds "qdiscs are still made" tc qdisc add dev v0 root handle 1: pss classes 3 link 20mbit
holds "and carry packets" ping -c 1 10.0.0.2
clear
unwire
unsteady
