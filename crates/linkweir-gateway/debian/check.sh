#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# check.sh PACKAGE [WORD...] - lists what a package of the gateway holds, and fails unless it is what it should be: its program
# runs, takes the examples, and is where its unit looks for it. The words are put before the program: qemu, for another processor.
set -eu

package=$1
shift
examples=$(dirname "$0")/../configs
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

dpkg-deb --info "$package"
dpkg-deb --extract "$package" "$folder/root"
# cargo-deb compresses manual pages
(cd "$folder/root" && find . -type f | sed 's|\.8\.gz$|.8|' | sort) >"$folder/files"
cat "$folder/files"
diff -u - "$folder/files" <<FILES
./usr/bin/linkweir-gateway
./usr/lib/systemd/system/linkweir-gateway-metrics@.service
./usr/lib/systemd/system/linkweir-gateway-page@.service
./usr/lib/systemd/system/linkweir-gateway@.service
./usr/share/bash-completion/completions/linkweir-gateway
./usr/share/doc/linkweir-gateway/BSD-3-Clause.txt
./usr/share/doc/linkweir-gateway/MIT-uPlot.txt
./usr/share/doc/linkweir-gateway/THIRD-PARTY-gateway.txt
./usr/share/doc/linkweir-gateway/copyright
$(cd "$examples" && find . -type f | sed 's|^\./|./usr/share/doc/linkweir-gateway/examples/|' | sort)
./usr/share/doc/linkweir-gateway/explanation/gateway.md
./usr/share/doc/linkweir-gateway/howto/gateway.md
./usr/share/doc/linkweir-gateway/howto/network.md
./usr/share/doc/linkweir-gateway/monitoring/alerts.yml
./usr/share/doc/linkweir-gateway/monitoring/grafana.json
./usr/share/doc/linkweir-gateway/reference/gateway.md
./usr/share/doc/linkweir-gateway/reference/recordings.md
./usr/share/fish/vendor_completions.d/linkweir-gateway.fish
./usr/share/man/man8/linkweir-gateway.8
./usr/share/zsh/vendor-completions/_linkweir-gateway
FILES

program=$folder/root/usr/bin/linkweir-gateway
version=$("$@" "$program" --version)
test "$version" = "linkweir-gateway $(dpkg-deb --field "$package" Version | sed 's/-[^-]*$//')"
# the others are the emulator's
grep -l '^\[gateway\]' "$folder"/root/usr/share/doc/linkweir-gateway/examples/* >"$folder/gateways" || {
	echo "check: no example with a [gateway] table in usr/share/doc/linkweir-gateway/examples of $package" >&2
	exit 1
}
# an example of a sealed tunnel names it
(umask 077 && "$@" "$program" keygen "$folder/root/usr/share/doc/linkweir-gateway/examples/key" >/dev/null)
while read -r example; do
	"$@" "$program" check "$example" --cleartext
done <"$folder/gateways"

for unit in "$folder"/root/usr/lib/systemd/system/*.service; do
	grep -q '^ExecStart=/usr/bin/linkweir-gateway ' "$unit"
	if command -v systemd-analyze >/dev/null; then
		sed -i "s|^ExecStart=/usr/bin|ExecStart=$folder/root/usr/bin|" "$unit"
		systemd-analyze verify "$unit"
		systemd-analyze security --offline=true "$unit" | tail -n 1
	else
		echo "check: $(basename "$unit") is not checked; missing: systemd-analyze of the package systemd"
	fi
done
