# SPDX-License-Identifier: GPL-2.0-only
# loaders.sh - two loaders at once, and loaders that are killed: the device always has a root that works.
. /guest/bpf.sh

wire
settings strict 2Mbit ''
linkweir-bpf add v0 /tmp/strict.toml >/tmp/first 2>&1 &
first=$!
linkweir-bpf add v0 /tmp/strict.toml >/tmp/second 2>&1
codes=$?
wait $first
codes="$codes $?"
case $codes in
"0 1" | "1 0") pass "one of two loaders adds, the other is refused" ;;
*) fault "two loaders" "exit codes $codes: $(cat /tmp/first /tmp/second)" ;;
esac
says "and says why" "has a discipline of linkweir-bpf already" cat /tmp/first /tmp/second
for n in 1 2 3 4; do linkweir-bpf link v0 ${n}Mbit || fault "link" "at once" & done
wait
traffic send 10.0.0.2 5003 0 1 958 0
look
says "four at once: all were handed over" "0 of 1024 places used" cat /tmp/show
sound "four at once"
holds "del" linkweir-bpf del v0

works() { # packets pass through the root, whatever it is
	begin_count 5003
	traffic send 10.0.0.2 5003 0 3 958 1000
	end_count
	[ "$arrived_sum" = 3 ] || fault "killed $1 after $2 ms" "$arrived_sum of 3 packets arrived: $(tc qdisc show dev v0)"
}
# an instant within the time that the command takes here, in ms
kill_at() { # kill_at MS COMMAND...
	ms=$1
	shift
	linkweir-bpf "$@" >/dev/null 2>&1 &
	sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
	kill -9 $! 2>/dev/null
	wait $! 2>/dev/null
}
took() { # took COMMAND...: ms
	t0=$(awk '{ print $1 * 1000 }' /proc/uptime)
	linkweir-bpf "$@"
	echo $(($(awk '{ print $1 * 1000 }' /proc/uptime) - t0))
}
most_add=$(took add v0 /tmp/strict.toml)
most_change=$(took link v0 3Mbit)
most_del=$(took del v0)
echo "# add takes $most_add ms, change $most_change, del $most_del"
killed=0 after_change=0 after_none=0
seed=1
random() { # random BELOW
	seed=$(((seed * 1103515245 + 12345) % 2147483648))
	echo $((seed / 65536 % $1))
}
to() { # to MBIT: sets `words` to a command for this rate; even ones change the whole file, with a limit of their own
	words="link v0 ${1}Mbit"
	if [ $(($1 % 2)) = 0 ]; then
		sed "s/2Mbit/${1}Mbit/; s/100p/$1p/" /tmp/strict.toml >/tmp/changed.toml
		words="change v0 /tmp/changed.toml"
	fi
}
while [ $killed -lt 50 ]; do
	ms=$(random "$most_add")
	kill_at "$ms" add v0 /tmp/strict.toml
	works add "$ms"
	if ! tc qdisc show dev v0 root | grep -q strict; then linkweir-bpf add v0 /tmp/strict.toml || fault "add after a killed add" "$ms ms"; fi
	to $((1 + killed))
	case $words in # a whole file is handed over at the end, so it is killed there
	change*) ms=$((most_change - 30 + $(random 45))) && [ "$ms" -ge 0 ] || ms=0 ;;
	*) ms=$(random "$most_change") ;;
	esac
	kill_at "$ms" $words
	works change "$ms"
	to $((2 + killed))
	linkweir-bpf $words || fault "a change after a killed one" "$ms ms: $words"
	works change "$ms"
	look
	grep -q "link $((2 + killed))Mbit" /tmp/show || fault "the change after a killed one" "$(cat /tmp/show)"
	grep FAULT /tmp/show && fault "killed change" "$ms ms: $(cat /tmp/show)"
	linkweir-bpf settings v0 >/tmp/in-force
	case "$words $(cmp -s /tmp/in-force /tmp/changed.toml && echo changed)$(cmp -s /tmp/in-force /tmp/strict.toml && echo added)" in
	change*" changed") ;;
	link*" changed") after_change=$((after_change + 1)) ;; # the killed change had been handed over
	link*" added") after_none=$((after_none + 1)) ;; # or not
	*) fault "the settings after a killed change" "$ms ms: $words: $(cat /tmp/in-force)" ;;
	esac
	ms=$(random "$((most_del + 1))")
	kill_at "$ms" del v0
	works del "$ms"
	linkweir-bpf del v0 2>/dev/null
	killed=$((killed + 3))
done
echo "# killed while they changed the whole file: $after_change had handed it over, $after_none had not"
pass "$killed loaders were killed"
same "nothing is pinned" "$(ls /sys/fs/bpf/linkweir | wc -l)" 0
holds "and the next one works" linkweir-bpf add v0 /tmp/strict.toml
holds "del at the end" linkweir-bpf del v0
unwire
