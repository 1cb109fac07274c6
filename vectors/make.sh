#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# make.sh - makes the random vectors, unless they are here already. Everything that reads vectors runs it first. Each folder's
# SHA256SUMS lists what the generator must make; if it makes other bytes on this machine, the script fails and names them.
set -eu
export LC_ALL=C
cd "$(dirname "$0")"

complete() { # complete FOLDER: its random files are those listed, no fewer, no more, with the same bytes
	(cd "$1" && sha256sum random-* 2>/dev/null | cmp -s - SHA256SUMS)
}

# unfinished files of a generator that was killed; find fails if another one renames a file at this moment
find . -name '.random-*' -mmin +60 -exec rm -f {} + 2>/dev/null || :

missing=
for folder in */; do
	folder=${folder%/}
	if [ ! -e "$folder/SHA256SUMS" ]; then # git removes only its own files of a policy that another commit has
		rm -f "$folder"/random-*
		rmdir "$folder" 2>/dev/null || :
	elif ! complete "$folder"; then
		missing="$missing $folder"
	fi
done
[ -n "$missing" ] || exit 0

# shellcheck disable=SC2086 # one word for each folder
python3 ../oracle/generate.py --make $missing
for folder in $missing; do
	if ! complete "$folder"; then
		echo "vectors: in vectors/$folder, oracle/ makes other files on this machine than SHA256SUMS lists:" >&2
		(cd "$folder" && sha256sum random-* | diff SHA256SUMS - >&2) || :
		echo "vectors: after a change of a model, python oracle/generate.py lists the new ones; without a change, report this" >&2
		exit 1
	fi
done
