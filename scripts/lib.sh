# Shared by ./dev and the scripts beside this file; sourced, not run. Sets ROOT and goes there.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT"

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
# A wrong command line: exit status 2, as the product does.
usage_error() { say "error: $*"; say "see ./dev ${COMMAND:+$COMMAND }--help"; exit 2; }

# Prints the comment block at the head of the calling script: each script's help is its first comment.
show_help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$1"; }

# Parallel compilers: one per CPU, fewer where memory is short (the largest units take 3 GiB).
build_jobs() {
  local cpus memory
  cpus=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 3145728) }' /proc/meminfo)
  (( memory < 1 )) && memory=1
  echo $(( cpus < memory ? cpus : memory ))
}

# Seconds since the machine started, to the hundredth: wall clocks jump.
uptime_seconds() { cut -d' ' -f1 /proc/uptime; }
seconds_since() { awk -v a="$1" -v b="$(uptime_seconds)" 'BEGIN { printf "%.1f", b - a }'; }

# C++ files of the project, tracked or about to be.
cpp_files() { git ls-files --cached --others --exclude-standard -- '*.h' '*.cpp' | while read -r f; do [[ -f $f ]] && echo "$f"; done; }
