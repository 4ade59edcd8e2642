#!/usr/bin/env bash
# Builds the tests, the examples and the tools in the release preset and runs every test; installs what that takes.
# Arguments go to CMake.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/setup.sh

install_missing "${for_tools[@]}" "${for_tests[@]}"
choose_compiler
find_cuda_headers
find_python
cmake --preset release -DGMLAKE_BUILD_BENCH=OFF "${cuda_option[@]}" "${python_option[@]}" "$@"
cmake --build --preset release

results=build/release/tests.xml
status=0
ctest --preset release --parallel "$(nproc)" --output-junit "$PWD/$results" || status=$?

count() { sed -n "s/.*$1=\"\([0-9]*\)\".*/\1/;T;p;q" $results; }
sed -n 's/.*\(skipped: [^<]*\).*/\1/p' $results | sort -u
echo "$(($(count tests) - $(count failures) - $(count skipped))) passed, $(count failures) failed, $(count skipped) skipped"
exit $status
