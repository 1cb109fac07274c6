#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# macos.sh [TARGET...] - asks Rust's compiler on Linux whether the crates that need no Linux compile for macOS, with zig as the C compiler.
#
# Nothing is linked or run. docs/reference/platforms.md says what that shows and what not.
set -eu

cd "$(dirname "$0")/.."
crates="linkweir-core linkweir-config linkweir-sim linkweir-plane linkweir-user linkweir-py"
targets=${*:-aarch64-apple-darwin x86_64-apple-darwin}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if command -v zig >/dev/null; then
	zig="zig"
elif python3 -c 'import ziglang' 2>/dev/null; then
	zig="python3 -m ziglang"
elif .venv/bin/python -c 'import ziglang' 2>/dev/null; then
	zig="$PWD/.venv/bin/python -m ziglang"
else
	echo "macos: no C compiler for macOS is here; .venv/bin/python -m pip install ziglang brings one" >&2
	exit 1
fi

failed=0
for target in $targets; do
	rustup target add "$target" >/dev/null 2>&1 || {
		echo "macos: rustup target add $target: no standard library of Rust for it" >&2
		exit 1
	}
	# clang's options for the target and the system's version are zig's to choose
	cat >"$folder/cc" <<COMPILER
#!/bin/bash
words=()
skip=
for word in "\$@"; do
	if [ -n "\$skip" ]; then skip=; continue; fi
	case \$word in
	-arch) skip=1 ;;
	--target=* | -mmacosx-version-min=*) ;;
	*) words+=("\$word") ;;
	esac
done
exec $zig cc -target ${target%%-*}-macos "\${words[@]}"
COMPILER
	printf '#!/bin/sh\nexec %s ar "$@"\n' "$zig" >"$folder/ar"
	chmod +x "$folder/cc" "$folder/ar"
	name=${target//-/_}
	for crate in $crates; do
		if env SDKROOT=/ PYO3_NO_PYTHON=1 PYO3_CROSS_PYTHON_VERSION=3.11 "CC_$name=$folder/cc" "AR_$name=$folder/ar" \
			cargo check --locked --quiet --target "$target" --package "$crate" >"$folder/log" 2>&1; then
			echo "$target $crate compiles"
		else
			echo "$target $crate DOES NOT COMPILE"
			head -n 20 "$folder/log"
			failed=1
		fi
	done
done
exit $failed
