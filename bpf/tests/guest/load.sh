# SPDX-License-Identifier: GPL-2.0-only
# load.sh - the verifier accepts each policy; prints the instructions it walked.
. /guest/bpf.sh
for file in /guest/*.bpf.o; do
	policy=$(basename "$file" .bpf.o)
	if out=$(linkweir-bpf cost "$policy" 2>&1); then
		pass "the verifier accepts $policy"
		echo "# $out"
	else
		fault "the verifier accepts $policy" "$out"
	fi
done
