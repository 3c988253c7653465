#!/bin/sh
# Compiles the kernels for this machine and for aarch64, runs both (the other one in an emulator), and wants one
# and the same answer from every CPU level of either.
# Needs g++-aarch64-linux-gnu and qemu-user (Debian's names). Usage: scripts/cross.sh
set -eu

here=$(dirname "$0")/..
native=$here/src/recsys/kernels/native
build=$here/build/cross
flags="-std=c++17 -O2 -ffp-contract=off -Wall -Wextra -I$native"
mkdir -p "$build/host" "$build/aarch64"

compile() { # compiler folder flags: every file but the Python binding and what only x86 has
  for file in "$native"/*.cpp "$here"/tests/kernels/native/digest.cpp; do
    case $file in */module.cpp | */level_avx*.cpp) continue ;; esac
    # shellcheck disable=SC2086
    "$1" $flags $3 -c "$file" -o "$2/$(basename "$file" .cpp).o"
  done
}

avx2="-mavx2 -mfma -mpopcnt -mbmi"
host_only=
if [ "$(uname -m)" = x86_64 ]; then
  host_only=-DRECSYS_X86_LEVELS
  # shellcheck disable=SC2086
  ${CXX:-c++} $flags $host_only $avx2 -c "$native/level_avx2.cpp" -o "$build/host/level_avx2.o"
  # shellcheck disable=SC2086
  ${CXX:-c++} $flags $host_only $avx2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512cd \
    -c "$native/level_avx512.cpp" -o "$build/host/level_avx512.o"
fi
compile "${CXX:-c++}" "$build/host" "$host_only"
${CXX:-c++} "$build"/host/*.o -o "$build/host/digest" -lpthread
compile aarch64-linux-gnu-g++ "$build/aarch64" ""
aarch64-linux-gnu-g++ -static "$build"/aarch64/*.o -o "$build/aarch64/digest" -lpthread

{ "$build/host/digest"; qemu-aarch64 "$build/aarch64/digest"; } >"$build/digests"
cat "$build/digests"
[ "$(sort -u "$build/digests" | wc -l)" = 1 ] || { echo "the answers differ" >&2; exit 1; }
