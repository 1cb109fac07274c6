#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# setup.sh PURPOSE... - installs the tools that a purpose needs on this machine (Debian or Ubuntu), or names those missing.
#
# As root it installs Debian packages with apt-get; it never calls sudo. Without root it names the packages and the use of
# each, and fails only if a tool is missing without which the purpose cannot run at all.
#
# Purposes: build check test bench site playground deb release fresh arm64 amd64 prove fuzz kernel kernel-test kernel-deb kernel-install kernel-series bpf lab ns3
set -eu

sources=$(dirname "$0")
rust_minimum=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$sources/Cargo.toml")
python_minimum=$(sed -n 's/^requires-python = ">=\(.*\)"/\1/p' "$sources/pyproject.toml")
missing_must=
missing_may=

at_least() { # at_least MINIMUM VERSION
	[ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}

have_rust() {
	command -v cargo >/dev/null 2>&1 && command -v rustc >/dev/null 2>&1 &&
		at_least "$rust_minimum" "$(rustc --version | cut -d' ' -f2)"
}

have_python() {
	command -v python3 >/dev/null 2>&1 &&
		at_least "$python_minimum" "$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')" &&
		python3 -c 'import ensurepip, venv' 2>/dev/null
}

compiles_m32() {
	printf '#include <errno.h>\nint main(void){return 0;}\n' | gcc -m32 -x c -o /dev/null - 2>/dev/null # errno.h needs the kernel's headers
}

clang_sanitizes() {
	echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n){return d && n ? 0 : 0;}' |
		clang -fsanitize=fuzzer -x c -o /dev/null - 2>/dev/null
}

have_qemu_user() {
	command -v qemu-aarch64-static || command -v qemu-aarch64
}

have_std() { # have_std TARGET: Rust's standard library for it
	ls "$(rustc --print target-libdir --target "$1")"/libstd-*.rlib
}

std_package() {
	echo "libstd-rust$(rust_suffix)-dev:arm64"
}

have_wasm() { # Rust's standard library for WebAssembly, or its sources
	have_std wasm32-unknown-unknown || test -e "$(rustc --print sysroot)/lib/rustlib/src/rust/library/std/Cargo.toml"
}

wasm_packages() { # Debian 12's Rust for browsers has sources instead of the library
	case $(rust_suffix) in
	-web) echo rust-web-src ;;
	*) echo libstd-rust-dev-wasm32 ;;
	esac
}

have_wasm_linker() {
	command -v wasm-ld || ls "$(rustc --print sysroot)"/lib/rustlib/*/bin/rust-lld
}

compiles_wasm() {
	echo 'int one(void){return 1;}' | clang --target=wasm32-unknown-unknown -x c -c -o /dev/null -
}

headers_of() { # headers_of SERIES: headers of a Debian cloud kernel of this series
	ls -d /lib/modules/"$1".*-cloud-amd64/build
}

have_clang() { # have_clang LEAST
	for version in 22 21 20 19; do
		[ "$version" -lt "$1" ] || ! command -v "clang-$version" >/dev/null 2>&1 || return 0
	done
	return 1
}

have_sbin() { # finds tools in /sbin, which is not in the PATH of plain users
	command -v "$1" || test -x "/sbin/$1"
}

need() { # need must|may PACKAGES WHAT-FOR PROBE...
	weight=$1 packages=$2 what=$3
	shift 3
	if "$@" >/dev/null 2>&1; then return; fi
	if [ "$weight" = must ]; then
		missing_must="$missing_must $packages"
	else
		missing_may="$missing_may $packages"
	fi
	echo "setup: missing: $packages ($what)"
}

candidate() { # the version apt would install
	apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p'
}

release() { # such as debian-12
	(. /etc/os-release && echo "$ID-${VERSION_ID:-}") 2>/dev/null
}

rust_suffix() { # Debian 12 has a current Rust under another name, for its browsers
	case $(candidate rustc) in
	"" | "(none)") [ "$(release)" != debian-12 ] || echo -web ;; # before the first apt-get update nothing else is known
	*) at_least "$rust_minimum" "$(candidate rustc)" || echo -web ;;
	esac
}

rust_packages() {
	echo "rustc$(rust_suffix)" "cargo$(rust_suffix)"
}

lint_package() { # lint_package clippy|fmt: the package for the installed compiler, if it is Debian's
	case $1-$(dpkg-query -S "$(command -v rustc)" 2>/dev/null) in
	clippy-rustc-web*) echo rust-web-clippy ;;
	clippy-rustc*) echo rust-clippy ;;
	fmt-rustc-web*) echo rustfmt-web ;;
	fmt-rustc*) echo rustfmt ;;
	esac
}

have_zarith() {
	command -v ocamlopt && [ -d "$(ocamlopt -where)/zarith" ]
}

clang_runtime() { # from Debian 13 on its name has no version number
	case $(candidate libclang-rt-dev)-$(release) in
	-debian-12 | "(none)-debian-12") echo libclang-rt-14-dev ;;
	*) echo libclang-rt-dev ;;
	esac
}

archives_known() { # after the first apt-get update
	ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1
}

installable() { # installable PACKAGE...: leaves out packages that apt does not know, as one of them would make it refuse all
	found=
	for package in "$@"; do
		case $(candidate "$package") in
		"" | "(none)")
			if archives_known; then
				case $package in
				rustc*) echo "setup: Rust $rust_minimum or later is needed, and no package of this release that setup.sh knows has it: install it another way, for example with rustup" >&2 ;;
				cargo*) ;; # comes with rustc
				*) echo "setup: this release has no package $package" >&2 ;;
				esac
				continue
			fi ;;
		esac
		found="$found $package"
	done
	echo "${found# }"
}

install_packages() { # never removes a package: gcc-multilib, for one, would take the place of a cross compiler
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends --no-remove "$@" >/dev/null
}

probe() {
	missing_must= missing_may=
	for purpose in "$@"; do
		case $purpose in
		build)
			need must gcc "C compiler" command -v gcc
			need must libc6-dev "C headers" sh -c 'echo "#include <string.h>" | gcc -fsyntax-only -x c -'
			need must python3-venv "Python $python_minimum or later with venv" have_python
			if ! have_rust; then
				need must "$(rust_packages)" "Rust $rust_minimum or later" false
			fi ;;
		check)
			for part in clippy fmt; do
				if [ -n "$(lint_package $part)" ]; then
					need may "$(lint_package $part)" "lint and format of Rust" cargo "$part" --version
				fi
			done ;;
		test)
			need may g++ "the core as C++" command -v g++
			need may clang "the core with a second compiler" command -v clang
			need may gcc-multilib "the core for 32 bits" compiles_m32
			need may "$(clang_runtime)" "libFuzzer's runtime" clang_sanitizes
			need must cbindgen "compares the link's C header with its sources" command -v cbindgen
			need may iproute2 "network namespaces for the gateway's tests" command -v ip
			need may util-linux "ends the processes that the gateway's tests start" command -v setpriv
			need may wireguard-go "another WireGuard implementation as the gateway's peer" command -v wireguard-go
			need may iperf3 "TCP traffic between them" command -v iperf3
			need may iptables "a firewall between two gateways" command -v iptables
			need may iputils-ping "the tutorial of the gateway" command -v ping
			need may mandoc "checks the manual pages" command -v mandoc
			need may prometheus "promtool checks the gateway's metrics" command -v promtool
			need may chromium "the gateway's page in a browser" command -v chromium
			need may systemd "systemd-analyze checks the gateway's unit" command -v systemd-analyze ;;
		site)
			need may chromium "checks the pages in a browser" command -v chromium
			need may util-linux "ends the browser with its check" command -v setpriv ;;
		playground)
			if command -v rustup >/dev/null 2>&1; then rustup --quiet target add wasm32-unknown-unknown || true; fi
			need must "$(wasm_packages)" "Rust's standard library for WebAssembly" have_wasm
			need must clang "compiles the core" compiles_wasm
			need must llvm "archives the core" command -v llvm-ar
			need must lld "links the simulator" have_wasm_linker
			need may nodejs "tests the simulator without a browser" command -v node
			need may firefox-esr "tests the simulator in a second browser" command -v firefox-esr ;;
		bench)
			need may ns2 "peer simulator" command -v ns
			need may libns3-dev "peer simulator" test -e /usr/include/ns3.37/ns3/core-module.h -o -d /usr/include/ns3
			need may g++ "building the ns-3 scenario" command -v g++
			need may iproute2 "network namespaces for tunnels" command -v ip
			need may iperf3 "TCP goodput of tunnels" command -v iperf3
			need may golang-go "wireguard-go, a peer" command -v go
			need may valgrind "instruction counts" command -v valgrind ;;
		ns3)
			need must g++ "compiles the module" command -v g++
			need must cmake "builds the module" command -v cmake
			need must python3-venv "ns-3's wheel" have_python
			need may libns3-dev "ns-3 of this Debian" test -d /usr/include/ns3
			need may debootstrap "a Debian with the newest ns-3" have_sbin debootstrap ;;
		fresh)
			need must python3 "runs the trial" command -v python3
			need must git "clones the commit" command -v git
			need must util-linux "namespaces" command -v unshare
			need must debootstrap "bare systems" have_sbin debootstrap
			need may buildah "builds the container images of a release" command -v buildah ;;
		deb)
			need must dpkg-dev "finds the libraries that the package depends on" command -v dpkg-shlibdeps
			need must xz-utils "compresses the package" command -v xz
			need may systemd "systemd-analyze checks the unit" command -v systemd-analyze ;;
		release)
			need must git "clones the commit" command -v git
			need must make "builds the packages" command -v make
			need must binutils "reads which C library programs need" command -v objdump
			need must mmdebstrap "cross compilers, and Python for aarch64" command -v mmdebstrap
			need must qemu-user-static "runs the files for aarch64" have_qemu_user
			if command -v rustup >/dev/null 2>&1; then rustup --quiet target add aarch64-unknown-linux-gnu || true; fi
			need must "$(std_package)" "Rust's standard library for aarch64; first dpkg --add-architecture arm64" have_std aarch64-unknown-linux-gnu ;;
		arm64 | amd64)
			need must python3 "runs the machine" command -v python3
			if [ "$purpose" = arm64 ]; then
				need must qemu-system-arm "virtual machine" command -v qemu-system-aarch64
			else
				need must qemu-system-x86 "virtual machine" command -v qemu-system-x86_64
			fi
			need must mmdebstrap "kernel and libraries of the machine" command -v mmdebstrap
			need must kmod "finds modules" have_sbin depmod
			need must binutils "finds libraries" command -v objdump
			need must cpio "packs the machine's files" command -v cpio
			need must xz-utils "unpacks modules" command -v xz ;;
		prove)
			need must gcc "C compiler" command -v gcc
			need must coq "proofs of the guarantees" command -v coqc
			need must ocaml-nox "compiles the proved models" command -v ocamlopt
			need must libzarith-ocaml-dev "their integers" have_zarith
			if [ "$(release)" = debian-13 ]; then
				echo "setup: Debian 13 has no Frama-C: run-time errors stay unproved here; make -C core prove-guarantee works"
			else
				need must frama-c-base "proofs" command -v frama-c
				need must why3 "connects Frama-C with the provers" command -v why3
				need must z3 "prover" command -v z3
				need must cvc4 "prover" command -v cvc4
			fi ;;
		fuzz)
			need must clang "fuzzing" command -v clang
			need must "$(clang_runtime)" "libFuzzer's runtime" clang_sanitizes ;;
		kernel)
			need must gcc "C compiler" command -v gcc
			need must make "builds the module" command -v make
			need must python3 "makes the vectors of linkweir_vectors" command -v python3
			need must libc6-dev "C headers" sh -c 'echo "#include <string.h>" | gcc -fsyntax-only -x c -'
			need must "linux-headers-$(uname -r)" "headers of the running kernel" test -e "/lib/modules/$(uname -r)/build/Makefile" ;;
		kernel-test)
			need must gcc "C compiler" command -v gcc
			need must make "builds the module" command -v make
			need must libc6-dev "C headers" sh -c 'echo "#include <string.h>" | gcc -fsyntax-only -x c -'
			need must python3 "runs the suite" command -v python3
			need may linux-headers-cloud-amd64 "headers of Debian 12's kernel 6.1" headers_of 6.1
			need may linux-headers-6.12-cloud-amd64 "headers of Debian 12's kernel 6.12" headers_of 6.12
			need may sparse "checks the module's sources" command -v sparse
			need must qemu-system-x86 "virtual machines" command -v qemu-system-x86_64
			need must busybox-static "user space of the virtual machines" command -v busybox
			need must dash "shell of the virtual machines" command -v dash
			need must iproute2 "tc" have_sbin tc
			need must kmod "finds modules" have_sbin depmod
			need must xz-utils "unpacks modules" command -v xz ;;
		kernel-deb)
			need must build-essential "builds packages" dpkg-query -s build-essential
			need must dpkg-dev "builds packages" command -v dpkg-buildpackage
			need must debhelper "builds packages" command -v dh
			need must dh-dkms "packages of modules" command -v dh_dkms
			need must dkms "builds the packaged module" have_sbin dkms ;;
		kernel-install)
			need must debootstrap "a fresh Debian" have_sbin debootstrap
			need must e2fsprogs "disk of the fresh Debian" have_sbin mke2fs
			need must qemu-system-x86 "virtual machine of the fresh Debian" command -v qemu-system-x86_64 ;;
		bpf)
			need must clang-19 "compiles BPF programs" have_clang 19
			need must libbpf-dev "headers of BPF programs" sh -c 'echo "#include <bpf/libbpf.h>" | gcc -fsyntax-only -x c -'
			need must libelf-dev "the loader reads programs" sh -c 'echo "#include <libelf.h>" | gcc -fsyntax-only -x c -'
			need must zlib1g-dev "the loader reads programs" sh -c 'echo "#include <zlib.h>" | gcc -fsyntax-only -x c -'
			need must qemu-system-x86 "virtual machines" command -v qemu-system-x86_64
			need must busybox-static "user space of the virtual machines" command -v busybox
			need must dash "shell of the virtual machines" command -v dash
			need must iproute2 "tc" have_sbin tc
			need must xz-utils "unpacks modules" command -v xz
			need may debootstrap "a bare Debian 13" have_sbin debootstrap
			need may e2fsprogs "its disk" have_sbin mke2fs
			need may bpftool "registers the kernel's own example" have_sbin bpftool ;;
		kernel-series)
			need must gcc "compiles what reads the parameters" command -v gcc
			need must libc6-dev "C headers" sh -c 'echo "#include <string.h>" | gcc -fsyntax-only -x c -'
			need must git "makes the patches" command -v git
			need must clang-format "lays out the code" command -v clang-format
			need must dpkg-dev "unpacks sources" command -v dpkg-source
			need must xz-utils "unpacks sources" command -v xz
			need may perl "runs checkpatch" command -v perl
			need may sparse "checks the code" command -v sparse
			need may flex "builds the kernel" command -v flex
			need may bison "builds the kernel" command -v bison
			need may bc "builds the kernel" command -v bc
			need may gcc-multilib "the code for 32 bits" compiles_m32
			need may pkg-config "builds tc" command -v pkg-config
			need may libmnl-dev "builds tc" test -e /usr/include/libmnl/libmnl.h
			need may mandoc "checks the manual page of tc" command -v mandoc
			need may iproute2 "the kernel's tests of tc" have_sbin ip
			need may "python3-yaml python3-jsonschema" "checks the netlink specification" python3 -c "import yaml, jsonschema" ;;
		lab)
			need may linux-source-6.12 "sources of the laboratory's kernel" test -e /usr/src/linux-source-6.12.tar.xz
			need may flex "building that kernel" command -v flex
			need may bison "building that kernel" command -v bison
			need may bc "building that kernel" command -v bc
			need may make "building that kernel" command -v make
			need may xz-utils "unpacks its sources" command -v xz
			need may libelf-dev "building kernels for QEMU" sh -c 'echo "#include <gelf.h>" | gcc -fsyntax-only -x c -'
			need may busybox-static "user space of that kernel" command -v busybox
			need may dash "shell of that kernel" command -v dash
			need may iproute2 "tc" have_sbin tc ;;
		*) echo "setup: unknown purpose '$purpose'; one of: build check test bench site playground deb release fresh arm64 amd64 prove fuzz kernel kernel-test kernel-deb kernel-install kernel-series bpf lab" >&2; exit 2 ;;
		esac
	done
}

probe "$@"
if [ -n "$missing_must$missing_may" ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		echo "setup: installing with apt-get"
		DEBIAN_FRONTEND=noninteractive apt-get update -qq
		probe "$@" >/dev/null # some package names are known only after the update
		# shellcheck disable=SC2086
		wanted=$(installable $missing_must $missing_may)
		case " $wanted " in
		*" prometheus "*) server=prometheus ;; # only promtool is needed, not its server
		*) server= ;;
		esac
		[ -d /run/systemd/system ] || server=
		[ -z "$server" ] || systemctl mask --runtime --quiet "$server"
		# shellcheck disable=SC2086
		[ -z "$wanted" ] || install_packages $wanted || for package in $wanted; do # without the one that would remove another
			install_packages "$package" || true
		done
		[ -z "$server" ] || { systemctl disable --quiet "$server"; systemctl unmask --runtime --quiet "$server"; } || true
		probe "$@" >/dev/null
	elif command -v apt-get >/dev/null 2>&1; then
		# shellcheck disable=SC2086
		wanted=$(installable $missing_must $missing_may)
		[ -z "$wanted" ] || echo "setup: installing needs root; as root: apt-get update && apt-get install --no-install-recommends $wanted"
	else
		echo "setup: install these with your package manager (Debian's names):$missing_must$missing_may"
	fi
fi
if [ -n "$missing_must" ]; then
	echo "setup: required, missing:$missing_must" >&2
	exit 1
fi
[ -z "$missing_may" ] || echo "setup: continuing without:$missing_may (steps that need them are skipped, with a message)"
