# SPDX-License-Identifier: GPL-2.0-only
# kills.sh - functions of loaders.sh, killed-add.sh and killed-del.sh: what is there after a loader was killed.
. /guest/bpf.sh

works() { # works COMMAND WHEN: packets pass through the root, whatever it is
	begin_count 5003
	traffic send 10.0.0.2 5003 0 3 958 1000
	end_count
	[ "$arrived_sum" = 3 ] || fault "packets pass, $1, $2" "$arrived_sum of 3 packets arrived: $(tc qdisc show dev v0)"
}

# A command is killed after each of its calls: those of bpf(2), the messages of tc to the kernel, and the pins that are made or removed. Each
# time one of three states is in force, and all three must be met.
pinned() { ls /sys/fs/bpf/linkweir; }
at_root() { tc qdisc show dev v0 root | grep -q "^qdisc lw"; }
state() { # sets `state`
	if at_root; then
		state="the discipline is the root"
	elif [ "$(pinned)" ]; then
		state="no root, and pins are left"
	else
		state="no root, nothing is pinned"
	fi
}
note() { # note COMMAND CALL: prints each state when it begins
	[ "$state" = "$last" ] || echo "# $1, killed after call $2: $state"
	last=$state
	echo "$state" >>/tmp/states
}
usable() { # usable WHAT: a root of ours takes commands; without one, the next add works, whatever is left. Then all is removed
	works "$1" "afterwards"
	if at_root; then
		look || fault "$1" "the root that is left takes no command"
		grep FAULT /tmp/show && fault "$1" "$(cat /tmp/show)"
		linkweir-bpf add v0 /tmp/rr.toml 2>/tmp/message && fault "$1" "a second root is added"
		grep -q "already" /tmp/message || fault "$1" "the next add: $(cat /tmp/message)"
	else
		linkweir-bpf add v0 /tmp/rr.toml || fault "$1" "the next add fails"
		works "$1" "after the next add"
	fi
	linkweir-bpf del v0 || fault "$1" "the next del fails"
	[ ! "$(pinned)" ] || fault "$1" "left: $(pinned)"
	at_root && fault "$1" "the root is left"
}
each_call() { # each_call add|del WORD...: kills this command after each call of the kernel that changes something
	calls=$(witness kill 0 linkweir-bpf "$@") || fault "$1" "fails"
	[ "$1" = del ] || linkweir-bpf del v0 || fault "$1" "del fails after calls were counted"
	rm -f /tmp/states
	last=
	for call in $(seq "$calls"); do
		[ "$1" = add ] || linkweir-bpf add v0 /tmp/rr.toml || fault "add before del" "call $call"
		witness kill "$call" linkweir-bpf "$@"
		code=$?
		[ $code = 137 ] || fault "$1 killed after call $call" "exit code $code"
		state
		note "$1" "$call"
		usable "$1 killed after call $call"
	done
	sort /tmp/states | uniq -c | sed "s/^/# $1, killed after each of $calls calls: /"
	same "$1 is killed in each of three states" "$(sort -u /tmp/states | wc -l)" 3
	same "$1: nothing is pinned in the end" "$(pinned)" ""
}
