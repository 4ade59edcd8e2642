#!/usr/bin/env bash
# Replays the shipped traces through every preset and draws build/report.html; installs and builds what that takes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source cmake/setup.sh

install_missing "${for_tools[@]}"
choose_compiler
cmake --preset release -DGMLAKE_BUILD_TESTS=OFF -DGMLAKE_BUILD_BENCH=OFF >/dev/null
cmake --build --preset release --target gmlake-replay

build/release/bin/gmlake-replay --preset all --report build/report.html bench/traces/*.csv*
echo "The report: $PWD/build/report.html"
