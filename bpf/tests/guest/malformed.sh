# SPDX-License-Identifier: GPL-2.0-only
# malformed.sh - 1,000 mutations of settings: each is refused or applied as a whole.
. /guest/bpf.sh

wire
settings drr 2Mbit 'quantum = "3000B"
mark = 7'
sed -i 's/{ dscp = "EF" }/&, { protocol = "udp", port = "5060-5061" }/' /tmp/drr.toml
holds "add" linkweir-bpf add v0 /tmp/drr.toml
cp /tmp/drr.toml /tmp/in-force
accepted=0 refused=0
mutate() { # mutate N: of what is in force in the beginning; up to three bytes or lines changed, left out or doubled
	awk -v seed="$1" '
		BEGIN { srand(seed); for (i = 33; i < 127; i++) printable = printable sprintf("%c", i) }
		{ text = text $0 "\n" }
		END {
			for (n = 1 + int(rand() * 3); n; n--) {
				at = 1 + int(rand() * length(text)); how = int(rand() * 5)
				if (how == 0) text = substr(text, 1, at - 1) substr(printable, 1 + int(rand() * 94), 1) substr(text, at + 1)
				if (how == 1) text = substr(text, 1, at - 1) substr(text, at + 1)
				if (how == 2) text = substr(text, 1, at) substr(text, at)
				if (how == 3) text = substr(text, 1, at - 1) int(rand() * 1000) substr(text, at)
				if (how == 4) { count = split(text, lines, "\n"); out = ""; at = 1 + int(rand() * count)
					for (i = 1; i < count; i++) if (i != at) out = out lines[i] "\n"; text = out }
			}
			printf "%s", text
		}' /tmp/drr.toml
}
for n in $(seq 1000); do
	mutate "$n" >/tmp/mutated
	linkweir-bpf change v0 /tmp/mutated 2>/tmp/message
	code=$?
	case $code in
	0)
		accepted=$((accepted + 1))
		cp /tmp/mutated /tmp/in-force
		traffic send 10.0.0.2 5003 0 1 158 0 ;;
	2) refused=$((refused + 1)) ;;
	*) fault "mutation $n" "exit code $code: $(cat /tmp/message)" ;;
	esac
	if [ $((n % 50)) = 0 ]; then
		echo "# $n of 1000: $accepted accepted, $refused refused, after $(cut -d" " -f1 /proc/uptime) s"
		look
		linkweir-bpf settings v0 | cmp -s - /tmp/in-force || fault "after mutation $n" "other settings are in force"
		grep -q " $accepted changes" /tmp/show || fault "after mutation $n" "$accepted were accepted: $(head -1 /tmp/show)"
		grep FAULT /tmp/show && fault "after mutation $n" "$(cat /tmp/show)"
	fi
done
echo "# $accepted accepted, $refused refused"
same "all mutations" "$((accepted + refused))" 1000
if [ $accepted -gt 20 ] && [ $refused -gt 500 ]; then pass "of both kinds"; else fault "of both kinds" "$accepted, $refused"; fi
same "settings that are not applied yet" "$(linkweir-bpf change v0 /tmp/drr.toml && linkweir-bpf show v0 | grep -c 'waits for the next packet')" 1
holds "del" linkweir-bpf del v0
unwire
