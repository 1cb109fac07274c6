# SPDX-License-Identifier: GPL-2.0-only
# killed-add.sh - `add` is killed after each of its calls: the device always has a root that works, and the next `add` works.
. /guest/kills.sh

wire
settings rr 2Mbit ''
each_call add v0 /tmp/rr.toml
unwire
