# SPDX-License-Identifier: GPL-2.0-only
# malformed.sh - 1,000 mutations of settings: each is refused or applied as a whole.
#
# After each one that was refused the memory of the discipline has the hash that it had. After each one that was accepted its text and its
# settings are in force.
. /guest/bpf.sh

wire
settings drr 2Mbit 'quantum = "3000B"
mark = 7'
sed -i 's/{ dscp = "EF" }/&, { protocol = "udp", port = "5060-5061" }/' /tmp/drr.toml
holds "add" linkweir-bpf add v0 /tmp/drr.toml
pins=$(echo /sys/fs/bpf/linkweir/*)
mkdir /tmp/mutated
# /tmp/mutated/N: of what is in force in the beginning; up to three bytes or lines changed, left out or doubled
awk '
	BEGIN { for (i = 33; i < 127; i++) printable = printable sprintf("%c", i) }
	{ whole = whole $0 "\n" }
	END {
		for (seed = 1; seed <= 1000; seed++) {
			srand(seed); text = whole
			for (n = 1 + int(rand() * 3); n; n--) {
				at = 1 + int(rand() * length(text)); how = int(rand() * 5)
				if (how == 0) text = substr(text, 1, at - 1) substr(printable, 1 + int(rand() * 94), 1) substr(text, at + 1)
				if (how == 1) text = substr(text, 1, at - 1) substr(text, at + 1)
				if (how == 2) text = substr(text, 1, at) substr(text, at)
				if (how == 3) text = substr(text, 1, at - 1) int(rand() * 1000) substr(text, at)
				if (how == 4) { count = split(text, lines, "\n"); out = ""; at = 1 + int(rand() * count)
					for (i = 1; i < count; i++) if (i != at) out = out lines[i] "\n"; text = out }
			}
			file = "/tmp/mutated/" seed; printf "%s", text >file; close(file)
		}
	}' /tmp/drr.toml
accepted=0 refused=0 compared=0
before=$(witness memory "$pins") || fault "memory" "cannot be read"
for n in $(seq 1000); do
	linkweir-bpf change v0 /tmp/mutated/"$n" 2>/tmp/message
	code=$?
	case $code in
	0)
		accepted=$((accepted + 1))
		traffic send 10.0.0.2 5003 0 1 158 0
		waits "it drains" is_empty
		look
		witness settings "$pins" | cmp -s - /tmp/mutated/"$n" || fault "after mutation $n" "other settings are in force"
		grep -q " $accepted changes" /tmp/show || fault "after mutation $n" "$accepted were accepted: $(head -1 /tmp/show)"
		grep FAULT /tmp/show && fault "after mutation $n" "$(cat /tmp/show)"
		before=$(witness memory "$pins") || fault "after mutation $n" "memory cannot be read" ;;
	2)
		refused=$((refused + 1))
		message=
		read -r message </tmp/message
		case $message in
		*"del and add"*) compared=$((compared + 1)) ;; # the file is right by itself
		"") fault "mutation $n" "refused without a message" ;;
		esac
		after=$(witness memory "$pins") || fault "after mutation $n" "memory cannot be read"
		[ "$after" = "$before" ] || fault "after mutation $n" "refused, but memory is another: $before, $after" ;;
	*) fault "mutation $n" "exit code $code: $(cat /tmp/message)" ;;
	esac
	[ $((n % 50)) != 0 ] || echo "# $n of 1000: $accepted accepted, $refused refused, after $(cut -d" " -f1 /proc/uptime) s"
done
echo "# $accepted accepted, $refused refused, $compared of them compared with the settings in force"
same "all mutations" "$((accepted + refused))" 1000
if [ $accepted -gt 20 ] && [ $refused -gt 500 ] && [ $compared -gt 0 ]; then
	pass "of all kinds"
else
	fault "of all kinds" "$accepted, $refused, $compared"
fi
same "settings" "$(linkweir-bpf settings v0)" "$(witness settings "$pins")"
same "settings that are not applied yet" "$(linkweir-bpf change v0 /tmp/drr.toml && linkweir-bpf show v0 | grep -c 'waits for the next packet')" 1
holds "del" linkweir-bpf del v0
unwire
