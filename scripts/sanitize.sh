#!/bin/sh
# Builds the extension with AddressSanitizer and UBSan, and runs the kernel tests and the fuzzer on it.
# Usage: [FUZZ=600] scripts/sanitize.sh [python]   (an environment with NumPy, pytest, Hypothesis and nanobind)
# FUZZ: seconds for the families of scripts/fuzz.py that reach C++, 60 by default; TESTS=0 leaves out the tests.
set -eu

python=${1:-.venv/bin/python}
python=$(cd "$(dirname "$(command -v "$python")")" && pwd)/$(basename "$python")
here=$(cd "$(dirname "$0")/.." && pwd)
build=$here/build/sanitize

cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DRECSYS_SANITIZE=ON -DPython_EXECUTABLE="$python"
cmake --build "$build" --parallel 2

# A copy of the package beside the sanitized extension: the installed one stays as it is.
rm -rf "$build/package"
mkdir -p "$build/package"
cp -R "$here/src/recsys" "$build/package/recsys"
rm -f "$build"/package/recsys/kernels/_native*.so
cp "$build"/_native*.so "$build/package/recsys/kernels/"
# An editable install finds the package before any path does.
cat >"$build/package/sitecustomize.py" <<'END'
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
END

# The interpreter is not instrumented: the runtimes must come first (the C++ one too, or its exceptions are
# not found), and the interpreter's own leaks are not ours. Memory, speed and start-up are those of the sanitizers here, so
# the tests that bound them are left out.
asan=$(${CXX:-c++} -print-file-name=libasan.so)
stdcxx=$(${CXX:-c++} -print-file-name=libstdc++.so)
export LD_PRELOAD="$asan $stdcxx" ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 PYTHONPATH="$build/package:$here/tests"
"$python" -c 'import sys, recsys.kernels._native as n; sys.exit("sanitize/package" not in n.__file__ and n.__file__)'
if [ "${TESTS:-1}" != 0 ]; then
  "$python" -m pytest -q -p no:cacheprovider -p no:randomly "$here"/tests/kernels \
    -m "not uncounted"
fi
"$python" "$here"/scripts/fuzz.py --only sparse kernels values --seconds "${FUZZ:-60}"
