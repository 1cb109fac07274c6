#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# dist.sh OUT - writes OUT/linkweir-ns3-VERSION.tar.gz: the folder `linkweir` for contrib/ of ns-3's tree, with the core, the vectors
# and the licences.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
out=$1
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$out" "$work/linkweir/core/tests" "$work/linkweir/LICENSES"
cp -R "$root"/ns3/. "$work/linkweir/"
cp -R "$root/core/include" "$root/core/src" "$work/linkweir/core/"
cp "$root/core/tests/plane.h" "$root/core/tests/vector.h" "$root/core/tests/replay.c" "$work/linkweir/core/tests/"
sh "$root/vectors/make.sh"
mkdir "$work/linkweir/vectors"
cp "$root"/vectors/*.* "$work/linkweir/vectors/"
for folder in "$root"/vectors/*/; do
	name=$(basename "$folder")
	[ "$name" != queues ] || continue # limits of classes as other hosts have them
	mkdir "$work/linkweir/vectors/$name"
	cp "$folder"* "$work/linkweir/vectors/$name/" # no names with a dot in front: another process may be making these
done
cp "$root/LICENSES/GPL-2.0-only.txt" "$root/LICENSES/BSD-3-Clause.txt" "$work/linkweir/LICENSES/"
tar --create --gzip --sort=name --owner=0 --group=0 --numeric-owner --file "$out/linkweir-ns3-$version.tar.gz" -C "$work" linkweir
echo "$out/linkweir-ns3-$version.tar.gz"
