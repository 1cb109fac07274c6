# SPDX-License-Identifier: GPL-2.0-only
# tdc.sh - runs the cases of tests/tdc as the kernel's tdc does, on all processors at once, each case in a network namespace of its own.
#
# run.py made a script of each case, from which these functions are called, and compares what they print.
. /guest/checks.sh
modprobe dummy
export TC=tc IP=ip DUMMY=dummy1

# run CODES COMMAND: in the namespace; its output goes to $out, its code to $code, which must be one of CODES ("any" for all)
run() {
	sh -c "ip netns exec $NS $2" >$out 2>$out.errors
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
	cp $out $out.verified
}
teardown() { # teardown CODES COMMAND
	run "$1" "$2" || broken="${broken:-$2: exit code $code: $(cat $out $out.errors)}"
}
finish() { # finish ID
	if [ -n "$broken" ]; then
		echo "tdc $1 broken $(echo "$broken" | tr '\n' ' ')"
	else
		echo "tdc $1 found $(base64 $out.verified | tr -d '\n')"
	fi
	ip netns del $NS
}
begin() { # makes the devices that tdc's plugin nsPlugin makes, as far as these cases use them
	broken=
	rm -f $out*
	ip netns add $NS
	ip -n $NS link set lo up
	ip -n $NS link add $DUMMY type dummy
}
work() { # work N: every case whose turn it is
	NS=tcut$1 out=/tmp/tdc$1 turn=0
	for case in /guest/tdc/*; do
		[ $((turn % cpus)) != "$1" ] || . "$case"
		turn=$((turn + 1))
	done
}

cpus=$(grep -c ^processor /proc/cpuinfo)
worker=0 workers=
while [ $worker -lt "$cpus" ]; do
	work $worker >/tmp/done$worker 2>&1 &
	workers="$workers $!"
	worker=$((worker + 1))
done
wait $workers
cat /tmp/done*
same "no namespace is left" "$(ip netns list)" ""
