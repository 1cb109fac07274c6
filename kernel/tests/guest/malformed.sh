# SPDX-License-Identifier: GPL-2.0-only
# malformed.sh - attributes as tc never sends them: of a wrong width, cut off, unknown, without NLA_F_NESTED. Each refusal names the
# attribute and what it must be, and points at it in the request.
. /guest/checks.sh
wire
steady
qdisc="attributes v0 add pss options{ classes=2 link=20000000"

# where: WORD is of the qdisc, of a class of it (number 2), a parameter, or of a class that is changed by itself (1:1)
says_of() { # says_of WHERE WORD TEXT: refused with this text, which points at this word
	case $1 in
	qdisc) refused "$2 of the qdisc" "$3 (at $2)" $qdisc "$2" } ;;
	class) refused "$2 of class 2" "$3 (at $2)" $qdisc class{ number=2 "$2" } } ;;
	number) refused "$2 in a class" "$3 (at $2)" $qdisc class{ "$2" } } ;;
	param) refused "$2 of sat" "$3 (at $2)" $qdisc param{ name=sat "$2" } } ;;
	class_param) refused "$2 of memory" "$3 (at $2)" $qdisc class{ number=2 param{ name=memory "$2" } } } ;;
	own) refused "$2 of class 1:1" "$3 (at $2)" attributes v0 class pds options{ "$2" } ;;
	own_param) refused "$2 of delay" "$3 (at $2)" attributes v0 class pds options{ param{ name=delay "$2" } } ;;
	esac
}

widths() { # widths WHERE NAME TEXT WIDTH...: none of them is right
	where=$1 name=$2 must=$3
	shift 3
	for width in "$@"; do says_of "$where" "$name/$width" "$must"; done
}

widths qdisc classes "classes must be u32, 1 .. 4096" 0 3 5 8
widths qdisc link "link must be u64, 1 .. 1000000000000 bit/s" 0 4 7 9
widths qdisc bandwidth "bandwidth must be u64, 0 .. 1000000000000 bit/s" 0 4 7 9
widths qdisc overhead "overhead must be s32, -64 .. 256 bytes, or raw" 0 3 5 8
widths qdisc mpu "mpu must be u32, 0 .. 256 bytes" 0 3 5 8
widths qdisc cells "cells must be u32, 0 .. 2" 0 3 5 8
widths qdisc split_gso "split_gso must be u32, 0 .. 1" 0 3 5 8
widths qdisc memlimit "memlimit must be u64, 0 .. 1000000000000 bytes" 0 4 7 9
says_of qdisc split_gso=2 "split_gso is outside 0 .. 1"
says_of qdisc memlimit=1000000000001 "memlimit is outside 0 .. 1000000000000 bytes"
says_of qdisc overhead=257 "overhead is outside -64 .. 256 bytes"
says_of qdisc mpu=257 "mpu is outside 0 .. 256 bytes"
says_of qdisc cells=3 "cells is outside 0 .. 2"
says_of qdisc bandwidth=1000000000001 "bandwidth is outside 0 .. 1000000000000 bit/s"
widths qdisc default "default must be u32, 1 .. 4096" 0 3 5 8
widths qdisc dscp "dscp must be 64 u16, each the number of a class or 0" 0 127 129
widths number number "number of a class must be u32, 1 .. 4096" 0 3 5 8
widths class limit "limit of class 2 must be u32, 1 .. 100000000 packets" 0 3 5 8
widths class limit_bytes "limit_bytes of class 2 must be u64, 1 .. 1000000000000 bytes" 0 4 7 9
widths class rate "rate of class 2 must be u64, 0 .. 1000000000000 bit/s" 0 4 7 9
widths param value "sat must be u64, 0 .. 1" 0 4 7 9
widths class_param value "memory of class 2 must be u64, 0 .. 604800000000000 ns" 0 4 7 9
refused "a name that does not end" "name of a parameter must be a string of 1 .. 31 bytes and 0 (at name/0)" $qdisc param{ name/0 value=1 } }
long=x1234567890123456789012345678901
refused "a name that is too long" "name of a parameter must be a string of 1 .. 31 bytes and 0 (at name=$long)" $qdisc param{ name=$long value=1 } }
refused "a value of a wrong width without a name" "value of a parameter must be u64, 0 .. 18446744073709551615 (at value/4)" \
	$qdisc param{ value/4 } }
refused "the same in a class" "value of a parameter of class 2 must be u64, 0 .. 18446744073709551615 (at value/9)" \
	$qdisc class{ number=2 param{ value/9 } } }

# nests
says_of qdisc param/3 "param must be a nest of a name and a value"
says_of class param/3 "param of class 2 must be a nest of a name and a value"
says_of qdisc class/3 "class must be a nest that begins with a number"
refused "options without their flag" "options must be a nest (NLA_F_NESTED) (at options[)" attributes v0 add pds options[ classes=2 }
refused "a parameter without its flag" "param must be a nest of a name and a value (at param[)" $qdisc param[ name=sat value=1 } }
refused "a class without its flag" "class must be a nest that begins with a number (at class[)" $qdisc class[ number=2 } }
refused "a number as a nest" "link must be u64, 1 .. 1000000000000 bit/s (at link{)" attributes v0 add pds options{ classes=2 link{ } }

# missing attributes
refused "a parameter without a value" "param needs a name and a value (at param{)" $qdisc param{ name=sat } }
refused "a parameter without a name" "param of class 2 needs a name and a value (at param{)" $qdisc class{ number=2 param{ value=1 } } }
refused "a class without a number" "number of a class is outside 1 .. 2 (at class{)" $qdisc class{ limit=1 } }

# unknown or cut-off attributes
says_of qdisc 17/4 "options: there is no attribute 17"
says_of class 9/4 "options of class 2: there is no attribute 9"
says_of class_param 9/4 "param of class 2: there is no attribute 9"
refused "a parameter that is none" "policy pss of this module has no qdisc param of that name (at param{)" $qdisc param{ name=hue value=1 } }
refused "one of a class that is none" "policy pss of this module has no class param of that name (at param{)" $qdisc class{ number=2 param{ name=sat value=1 } } }
refused "options that are cut off" "options: the last attribute is cut off (at options{)" $qdisc cut }
refused "a class that is cut off" "options of class 2: the last attribute is cut off (at class{)" $qdisc class{ number=2 cut } }
refused "a parameter that is cut off" "param: the last attribute is cut off (at param{)" $qdisc param{ name=sat cut } }

# values out of range are pointed at as well
says_of qdisc classes=0 "classes is outside 1 .. 4096"
says_of qdisc link=0 "link is outside 1 .. 1000000000000 bit/s"
says_of qdisc default=3 "default is outside 1 .. 2"
says_of number number=3 "number of a class is outside 1 .. 2"
says_of class limit=0 "limit of class 2 is outside 1 .. 100000000 packets"
says_of class limit_bytes=0 "limit_bytes of class 2 is outside 1 .. 1000000000000 bytes"
says_of class rate=1000000000001 "rate of class 2 is outside 0 .. 1000000000000 bit/s"
says_of param value=2 "sat is outside 0 .. 1"
# a refusal by a rule across parameters points at no attribute
refused "a rule across parameters" "class 2: a queue with a low_level needs a reservation: give rate or share (at nothing)" \
	$qdisc class{ number=2 param{ name=low_level value=4 } } }
says_of class_param value=604800000000001 "memory of class 2 is outside 0 .. 604800000000000 ns"
same "nothing was made" "$(tc qdisc show dev v0 | grep -c ' 1: ')" 0

# tc class change
holds "pds" tc qdisc add dev v0 root handle 1: pds classes 2 limit 80
widths own limit "limit of class 1 must be u32, 1 .. 100000000 packets" 0 3 5 8
widths own_param value "delay of class 1 must be u64, 1 .. 65535" 0 4 7 9
says_of own rate=1000000000001 "rate of class 1 is outside 0 .. 1000000000000 bit/s"
says_of own number=2 "number of a class must be 1 here: leave it out"
says_of own 9/4 "options of class 1: there is no attribute 9"
refused "no options" "options are missing: nothing to change" attributes v0 class pds
refused "options without their flag, of a class" "options of class 1 must be a nest (NLA_F_NESTED) (at options[)" attributes v0 class pds options[ limit=1 }
refused "another number of classes that is none" "classes is outside 1 .. 4096 (at classes=0)" attributes v0 change pds options{ classes=0 }
same "nothing was changed" "$(tc class show dev v0 classid 1:1 | sed 's/ *$//')" "class pds 1:1 parent 1: limit 1000p delay 1 loss 1"
refused "what is fixed" "k is fixed when the qdisc is made: delete it and add it again (at param{)" attributes v0 change pds options{ param{ name=k value=7 } }
holds "its own number" attributes v0 class pds options{ number=1 limit=7 }
holds "what is right is still taken" attributes v0 class pds options{ limit=7 param{ name=delay value=3 } }
same "and was changed" "$(tc class show dev v0 classid 1:1 | sed 's/ *$//')" "class pds 1:1 parent 1: limit 7p delay 3 loss 1"
clear

# a class in two nests, which tc sends as one
holds "a limit, then one in bytes" attributes v0 add lw_pf options{ classes=2 class{ number=1 limit=7 } class{ number=1 limit_bytes=5000 } class{ number=2 limit_bytes=5000 } }
same "both hold" "$(tc class show dev v0 classid 1:1 | sed 's/ *$//')" "class lw_pf 1:1 parent 1: limit 7p limit_bytes 5000b weight 1"
same "and bytes alone where only they are given" "$(tc class show dev v0 classid 1:2 | sed 's/ *$//')" "class lw_pf 1:2 parent 1: limit_bytes 5000b weight 1"
clear
unwire
unsteady
