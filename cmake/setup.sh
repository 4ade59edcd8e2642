# shellcheck shell=bash disable=SC2034  # the variables are for those who source this
# Sourced by examples/demo.sh, tests/run.sh and .ci/run: installs what a build needs and this machine lacks.
# Debian and Ubuntu only; elsewhere it says what is missing, and nothing is installed when nothing is.

# Each need: the package that brings it, then the command or <header> that shows it is here.
for_tools=(cmake:cmake ninja-build:ninja g++:c++ 'libboost-dev:<boost/intrusive/set.hpp>' 'libcli11-dev:<CLI/CLI.hpp>'
  'nlohmann-json3-dev:<nlohmann/json.hpp>' 'zlib1g-dev:<zlib.h>')
for_tests=('doctest-dev:<doctest/doctest.h>')
for_bench=('libbenchmark-dev:<benchmark/benchmark.h>' 'libmimalloc-dev:<mimalloc.h>' 'libjemalloc-dev:<jemalloc/jemalloc.h>')

is_here() {
  if [[ $1 == '<'* ]]; then
    echo "#include $1" | c++ -std=c++17 -E -x c++ - -o /dev/null 2>/dev/null
  else
    command -v "$1" >/dev/null
  fi
}

apt_install() {
  if ! command -v apt-get >/dev/null; then
    echo "missing, and no apt-get to install them with: $*" >&2
    return 1
  fi
  echo "installing: $*"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  if ((EUID != 0)); then apt=(sudo "${apt[@]}"); fi
  local install=("${apt[@]}" install --yes --no-install-recommends "$@")
  # A fresh machine's package lists are empty or stale.
  "${install[@]}" >/dev/null 2>&1 || { "${apt[@]}" update && "${install[@]}" >/dev/null; }
}

install_missing() {
  local need missing=()
  for need in "$@"; do
    is_here "${need#*:}" || missing+=("${need%%:*}")
  done
  ((${#missing[@]} == 0)) || apt_install "${missing[@]}"
}

# Sets CXX, unless it is set, to a GCC that knows C++20.
choose_compiler() {
  if [[ -n ${CXX:-} ]]; then return; fi
  local candidate version
  for candidate in g++ g++-15 g++-14 g++-13 g++-12; do
    version=$("$candidate" -dumpversion 2>/dev/null) || continue
    if ((${version%%.*} >= 12)); then export CXX=$candidate && return; fi
  done
  apt_install g++-12
  export CXX=g++-12
}

# Sets cuda_option to what CMake needs to find cuda.h. Where there is no toolkit, the headers alone come from PyPI;
# without them everything but the CUDA parts is built.
find_cuda_headers() {
  cuda_option=()
  if is_here '<cuda.h>' || [[ -e ${CUDA_HOME:-/usr/local/cuda}/include/cuda.h ]]; then return; fi
  local headers=build/deps/nvidia/cu13/include
  if [[ ! -e $headers/cuda.h ]]; then
    echo "no CUDA toolkit: getting its headers from PyPI"
    if ! { install_missing python3:python3 python3-pip:pip3 &&
      PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --target build/deps 'nvidia-cuda-runtime==13.0.*'; }; then
      echo "no CUDA headers: the CUDA parts are left out" >&2
      return
    fi
  fi
  cuda_option=(-DGMLAKE_CUDA_INCLUDE_DIR="$PWD/$headers")
}

# Sets python_option to a Python that has pytest and sees whatever PyTorch python3 has; without one the Python package is
# built and not tested.
find_python() {
  python_option=()
  if python3 -c 'import pytest' 2>/dev/null; then return; fi
  if [[ ! -x build/venv/bin/pytest ]]; then
    python3 -c 'import ensurepip' 2>/dev/null || install_missing python3:python3 || true
    python3 -c 'import ensurepip' 2>/dev/null || apt_install python3-venv || true
    if ! { python3 -m venv --system-site-packages build/venv && build/venv/bin/pip install --quiet pytest; }; then
      echo "no pytest: the Python package is not tested" >&2
      return
    fi
  fi
  python_option=(-DGMLAKE_PYTHON="$PWD/build/venv/bin/python")
}
