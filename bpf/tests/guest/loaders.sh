# SPDX-License-Identifier: GPL-2.0-only
# loaders.sh - two loaders at once, and loaders that are killed: the device always has a root that works.
. /guest/kills.sh

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

# an instant within the time that the command takes here, in ms; `killed` counts those that had not ended by then
killed=0 tried=0
kill_at() { # kill_at MS COMMAND...
	ms=$1
	shift
	echo "$1 $ms" >>/tmp/instants
	tried=$((tried + 1))
	linkweir-bpf "$@" >/dev/null 2>&1 &
	sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
	kill -9 $! 2>/dev/null
	wait $! 2>/dev/null
	[ $? != 137 ] || killed=$((killed + 1))
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
seed=1
random() { # random BELOW: sets `ms`; a function that prints it would advance the seed of its own process only
	seed=$(((seed * 1103515245 + 12345) % 2147483648))
	ms=$((seed / 65536 % $1))
}
to() { # to MBIT: sets `words` to a command for this rate; even ones change the whole file, with a limit of their own
	words="link v0 ${1}Mbit"
	if [ $(($1 % 2)) = 0 ]; then
		sed "s/2Mbit/${1}Mbit/; s/100p/$1p/" /tmp/strict.toml >/tmp/changed.toml
		words="change v0 /tmp/changed.toml"
	fi
}
after_change=0 after_none=0
whole() { # whole WHAT: the settings in force are those of the file before the killed change, or of the new one
	look
	grep FAULT /tmp/show && fault "$1" "$(cat /tmp/show)"
	linkweir-bpf settings v0 >/tmp/in-force
	if cmp -s /tmp/in-force /tmp/changed.toml; then
		after_change=$((after_change + 1))
	elif cmp -s /tmp/in-force /tmp/strict.toml; then
		after_none=$((after_none + 1))
	else
		fault "$1" "settings of no file: $(cat /tmp/in-force)"
	fi
}
rate=0
while [ $killed -lt 50 ] && [ $tried -lt 90 ]; do
	rate=$((rate + 1))
	random "$most_add"
	kill_at "$ms" add v0 /tmp/strict.toml
	works add "$ms"
	if ! tc qdisc show dev v0 root | grep -q strict; then linkweir-bpf add v0 /tmp/strict.toml || fault "add after a killed add" "$ms ms"; fi
	to $rate
	random "$most_change"
	kill_at "$ms" $words
	works change "$ms"
	case $words in change*) whole "killed change after $ms ms" ;; esac
	to $((rate + 1))
	linkweir-bpf $words || fault "a change after a killed one" "$ms ms: $words"
	works change "$ms"
	look
	grep -q "link $((rate + 1))Mbit" /tmp/show || fault "the change after a killed one" "$(cat /tmp/show)"
	grep FAULT /tmp/show && fault "killed change" "$ms ms: $(cat /tmp/show)"
	random "$((most_del + 1))"
	kill_at "$ms" del v0
	works del "$ms"
	linkweir-bpf del v0 2>/dev/null
done
echo "# at random instants: $killed of $tried were killed, the others had ended; $after_change of $((after_change + after_none)) had handed over a file"
if [ $killed -ge 50 ]; then pass "50 loaders were killed"; else fault "50 loaders were killed" "$killed of $tried"; fi
instants=$(sort -u /tmp/instants | wc -l)
if [ $((2 * instants)) -ge $tried ]; then pass "the instants differ"; else fault "the instants differ" "$instants of $tried"; fi
same "nothing is pinned" "$(ls /sys/fs/bpf/linkweir | wc -l)" 0

# A loader hands a file over in one of its last calls of the kernel, which random instants hardly meet. So it is killed after each of the
# last calls, one of which is that one.
linkweir-bpf add v0 /tmp/strict.toml
to 4
calls=$(witness kill 0 linkweir-bpf $words)
echo "# a change makes $calls calls"
after_change=0 after_none=0
for call in $(seq $((calls - 11)) "$calls"); do
	linkweir-bpf change v0 /tmp/strict.toml || fault "the file before" "call $call"
	works change "call $call"
	witness kill "$call" linkweir-bpf $words
	code=$?
	[ $code = 137 ] || fault "killed after call $call" "exit code $code"
	works change "call $call"
	whole "killed after call $call"
done
echo "# killed after one of the last calls: $after_none had not handed the file over, $after_change had"
if [ $after_none -gt 0 ] && [ $after_change -gt 0 ]; then
	pass "killed before and after a file was handed over"
else
	fault "killed before and after a file was handed over" "$after_none, $after_change"
fi
holds "del" linkweir-bpf del v0
holds "and the next one works" linkweir-bpf add v0 /tmp/strict.toml
holds "del at the end" linkweir-bpf del v0
same "nothing is pinned at the end" "$(ls /sys/fs/bpf/linkweir | wc -l)" 0
unwire
