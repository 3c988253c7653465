#!/bin/sh
# Compiles the kernels for this machine and for aarch64, runs both (the other one in an emulator), and wants one
# and the same answer from every CPU level of either.
#   scripts/cross.sh            the answers of the kernels alone
#   scripts/cross.sh python     makes build/cross/python, a Python for aarch64 with this tree and its kernels
# Needs Debian's g++-aarch64-linux-gnu and qemu-user; the second form also apt-get, which fetches Debian's Python
# for arm64 into build/ (nothing is installed), .venv with pip and nanobind, and an index with wheels for aarch64.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
native=$here/src/recsys/kernels/native
build=$here/build/cross
flags="-std=c++17 -O2 -ffp-contract=off -Wall -Wextra -I$native"
mkdir -p "$build/host" "$build/aarch64"

if [ "${1:-}" = python ]; then
  root=$build/root
  site=$build/site
  if [ ! -e "$root/usr/bin/python3" ]; then
    mkdir -p "$build/apt/lists/partial" "$build/apt/archives/partial" "$root"
    : >"$build/apt/status"
    apt="apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::Cache=$build/apt
      -o Dir::State=$build/apt -o Dir::State::status=$build/apt/status -o Debug::NoLocking=1"
    $apt update
    $apt install --download-only --yes --no-install-recommends python3 libpython3-dev libstdc++6
    for package in "$build"/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  fi
  version=$(basename "$(readlink "$root/usr/bin/python3")")
  version=${version#python}
  if [ ! -e "$site/.complete" ]; then
    platforms=$(for n in 17 24 26 27 28; do echo "--platform manylinux_2_${n}_aarch64"; done)
    # shellcheck disable=SC2086
    "$here/.venv/bin/python" -m pip install --quiet --target "$site" --upgrade --only-binary :all: \
      --python-version "$version" --implementation cp $platforms --platform manylinux2014_aarch64 \
      numpy scipy pandas narwhals click rich polars pyarrow
    touch "$site/.complete"
  fi
  nanobind=$("$here/.venv/bin/python" -c 'import nanobind; print(nanobind.__path__[0])')
  rm -rf "$site/recsys"
  cp -r "$here/src/recsys" "$site/recsys"
  sources=$(find "$native" -name '*.cpp' ! -name 'level_avx*')
  # shellcheck disable=SC2086
  aarch64-linux-gnu-g++ -std=c++17 -O3 -ffp-contract=off -fPIC -shared -fvisibility=hidden -fno-strict-aliasing \
    -DNDEBUG -I"$native" -I"$nanobind/include" -I"$nanobind/ext/robin_map/include" \
    -I"$root/usr/include/python$version" -I"$root/usr/include" $sources "$nanobind/src/nb_combined.cpp" \
    -o "$site/recsys/kernels/_native.so" -lpthread
  cat >"$build/python" <<END
#!/bin/sh
PYTHONPATH=$site exec qemu-aarch64 -L $root $root/usr/bin/python$version "\$@"
END
  chmod +x "$build/python"
  exec "$build/python" -c 'import platform, recsys; print(platform.machine(), recsys.show_backends())'
fi

compile() { # compiler folder flags: every file but what needs Python and what only x86 has
  for file in "$native"/*.cpp "$here"/tests/kernels/native/digest.cpp; do
    case $file in */module.cpp | */nested_dicts.cpp | */level_avx*.cpp) continue ;; esac
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
