# SPDX-License-Identifier: GPL-2.0-only
# vectors.sh - every vector of every offered policy replays in BPF.
. /guest/bpf.sh
for file in /guest/*.bpf.o; do
	policy=$(basename "$file" .bpf.o)
	out=$(linkweir-bpf replay /guest/vectors/"$policy"/*.vec 2>&1) && pass "$policy" || fault "$policy" "$(echo "$out" | head -5)"
	echo "# $policy: $(echo "$out" | tail -1)"
done
