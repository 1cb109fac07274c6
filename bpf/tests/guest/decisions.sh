# SPDX-License-Identifier: GPL-2.0-only
# decisions.sh - for lab/agreement: a policy on a device that takes every packet at once; prints its calls.
#
# /guest/job has settings.toml, due (lab/guest/workload.c) and flows, the code point of each flow.
. /guest/bpf.sh

echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 # else the kernel sends packets of its own
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
ip link add v0 type dummy
ip addr add 10.0.0.1/24 dev v0
ip link set v0 up
holds "add" linkweir-bpf add v0 /guest/job/settings.toml
ZERO_NS=$(awk '{ printf "%.0f", ($1 + 1) * 1e9 }' /proc/uptime)
export ZERO_NS
holds "send" workload datagrams 10.0.0.2 /guest/job/due $(cat /guest/job/flows)
waits "it drains" is_empty
look
sed 's/^/# /' /tmp/show
sound "decisions"
linkweir-bpf calls v0 >/tmp/calls && gzip -1 </tmp/calls | base64 -w 1000 | sed 's/^/calls /'
