# SPDX-License-Identifier: GPL-2.0-only
# killed-del.sh - `del` is killed after each of its calls: the device always has a root that works, and the next `add` works.
. /guest/kills.sh

wire
settings rr 2Mbit ''
holds "add" linkweir-bpf add v0 /tmp/rr.toml
each_call del v0
unwire
