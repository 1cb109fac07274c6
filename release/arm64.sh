#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# arm64.sh - cross-compiles the gateway's package for arm64 and the core's test program. arm64.py runs it as root in a bare Debian
# that has the sources in /linkweir, the crates in /vendor and cargo-deb in /tools. The results are in /out.
set -eu

export HOME=/root LC_ALL=C.UTF-8 CARGO_HOME=/root/cargo CARGO_TERM_COLOR=never CARGO_NET_OFFLINE=true
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
target=aarch64-unknown-linux-gnu
mkdir -p "$CARGO_HOME" /out
cat >"$CARGO_HOME/config.toml" <<CONFIG
[source.crates-io]
replace-with = "vendor"
[source.vendor]
directory = "/vendor"
CONFIG

cd /linkweir
cargo build --locked --release --quiet --package linkweir-gateway --target $target
# dpkg-shlibdeps asks this architecture's compiler for its libraries
DEB_HOST_ARCH=arm64 /tools/cargo-deb --quiet --package linkweir-gateway --no-build --locked --target $target \
	--output /out/linkweir-gateway.deb
aarch64-linux-gnu-gcc -std=c11 -O2 -Icore/include core/tests/replay.c core/src/*.c -o /out/replay
{
	rustc --version
	aarch64-linux-gnu-gcc --version | head -n 1
} >/out/compilers
