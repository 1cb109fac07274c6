# SPDX-License-Identifier: GPL-2.0-only
# tdc.sh - runs the cases of tests/tdc as the kernel's tdc does, on all processors at once, each case in a network namespace of its own.
#
#   tdc.sh          all cases of /guest/tdc
#   tdc.sh CASE     one, in the present namespace; CASE is a script that calls the functions below
#
# run.py made these scripts, and compares what is printed here: `tdc ID found OUTPUT`, in base64, or `tdc ID broken REASON`.

# run CODES COMMAND: its output goes to $out, its code to $code, which must be one of CODES ("any" for all)
run() {
	(eval "$2") >$out 2>$out.errors
	code=$?
	case " $1 " in
	*" $code "* | " any ") ;;
	*) return 1 ;;
	esac
}
setup() { # setup CODES COMMAND
	[ -z "$broken" ] || return
	run "$1" "$2" || broken="$2: exit code $code: $(cat $out $out.errors)"
}
execute() { # execute CODE COMMAND
	[ -z "$broken" ] || return
	run any "$2"
	[ $code = "$1" ] || broken="$2: exit code $code, not $1: $(cat $out $out.errors)"
}
verify() { # verify COMMAND: if it fails what it says counts
	[ -z "$broken" ] || return
	run any "$1"
	[ $code = 0 ] || [ ! -s $out.errors ] || cp $out.errors $out
	found=$(base64 $out | tr -d '\n')
}
teardown() { # teardown CODES COMMAND
	run "$1" "$2" || broken="${broken:-$2: exit code $code: $(cat $out $out.errors)}"
}
finish() { # finish ID
	if [ -n "$broken" ]; then echo "tdc $1 broken $(echo "$broken" | tr '\n' ' ')"; else echo "tdc $1 found $found"; fi
}

if [ $# -gt 0 ]; then
	TC=tc IP=ip DUMMY=dummy1 broken= found= out=/tmp/tdc$$
	ip link add $DUMMY type dummy || broken="no device"
	. "$1"
	rm -f $out $out.errors
	exit
fi

. /guest/checks.sh
# before they run at once: busybox's modprobe may fail for a module that another modprobe is loading
for module in dummy sch_htb sch_hfsc sch_drr sch_qfq sch_ets sch_prio sch_tbf sch_ingress cls_matchall cls_u32 act_gact act_skbedit act_mirred; do
	modprobe $module 2>/dev/null
done
steady
cpus=$(grep -c ^processor /proc/cpuinfo)
work() { # work N: every case whose turn it is
	turn=0
	for case in /guest/tdc/*; do
		[ $((turn % cpus)) != "$1" ] || unshare -n dash /guest/tdc.sh "$case"
		turn=$((turn + 1))
	done
}
worker=0 workers=
while [ $worker -lt "$cpus" ]; do
	work $worker >/tmp/done$worker 2>&1 &
	workers="$workers $!"
	worker=$((worker + 1))
done
wait $workers
cat /tmp/done*
unsteady
unused() { [ "$(lsmod | awk '$1 == "sch_linkweir" { print $3 }')" = 0 ]; }
waits "with their namespaces all qdiscs are gone" unused && pass "with their namespaces all qdiscs are gone"
