# What the checks of the acceptance share: POSIX sh, sourced by the file run of the bundle.
# Every wait has an end, and no check begins without the time that it may need.

quoted() { printf '"%s"' "$(printf '%s' "$1" | tr '\n' ' ' | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g')"; }

# One line of the table: NAME passed|failed|skipped NOTE
check() {
  printf '%-28s %-8s %s\n' "$1" "$2" "$3"
  checks="$checks${checks:+,}{\"name\":$(quoted "$1"),\"result\":\"$2\",\"note\":$(quoted "$3")}"
  if [ "$2" = failed ]; then failed=1; fi
}

# The time since the machine started, in hundredths of a second: wall clocks jump.
now() { read -r uptime rest </proc/uptime; echo "${uptime%.*}${uptime#*.}"; }
# The milliseconds since a time of now().
ms_since() { echo $((($(now) - $1) * 10)); }

# True if SECONDS are left; otherwise the check NAME is skipped.
has_time() {  # NAME SECONDS
  left=$((limit_s - ($(now) - began) / 100))
  if [ "$left" -ge "$2" ]; then return 0; fi
  check "$1" skipped "it may need $2 s, and $left s of $limit_s s were left"
  return 1
}

# True if there is CUDA; otherwise the check NAME is skipped.
has_cuda() {  # NAME
  if [ -n "$cuda" ]; then return; fi
  check "$1" skipped "no libcuda.so.1 on this machine"
  return 1
}

# Runs a command for at most SECONDS (exit 124, or 137 if it had to be killed).
limited() {  # SECONDS COMMAND...
  if [ -n "$timeout" ]; then timeout -k 2 "$@"; else shift; "$@"; fi
}

# Repeats a command until it succeeds; fails when SECONDS are over.
wait_until() {  # SECONDS COMMAND...
  wait_end=$(($(now) + $1 * 100))
  shift
  until "$@"; do
    if [ "$(now)" -ge "$wait_end" ]; then return 1; fi
    sleep 0.1
  done
}

# The command line, and the value at a JSON pointer of what is on standard input.
gp() { limited 20 "$here/bin/gpu-platform" "$@"; }
value() { "$here/bin/gpu-acceptance" value "$1"; }

job_value() { gp jobs describe "$1" --json 2>/dev/null | value "$2"; }  # JOB POINTER
job_is() { [ "$(job_value "$1" /state)" = "$2" ]; }                     # JOB STATE
job_ended() { case $(job_value "$1" /state) in COMPLETED | FAILED | CANCELLED | TIMED_OUT) ;; *) return 1 ;; esac; }
last_line() { gp jobs logs "$1" 2>&1 | tail -n 1; }                     # JOB
# How a job ended, in words: "FAILED, exit code 70".
job_end() {
  gp jobs describe "$1" --json >"$work/job.json" 2>/dev/null
  echo "$(value /state <"$work/job.json"), exit code $(value /exit_code <"$work/job.json" || echo none), \
reason $(value /reason <"$work/job.json" || echo none), waits for $(value /wait_reason/text <"$work/job.json" || echo nothing)"
}

# Submits a job on all GPUs and prints its id: OPTIONS... -- COMMAND...
submit() { gp submit --gpus "$gpus" --time 5m "$@" 2>>"$work/submit.err"; }
# Submits CUDA work in the same way: OPTIONS... -- VERB OPTIONS... The first are words without spaces.
submit_work() {
  submit_options=
  while [ "$1" != -- ]; do submit_options="$submit_options $1"; shift; done
  shift
  submit $submit_options -- "$here/bin/gpu-acceptance" "$@" --cuda "$cuda"
}

# Ends all jobs of ours, so that a check finds the GPUs free after any other.
clear_jobs() {
  gp jobs kill --all --yes >/dev/null 2>&1
  wait_until 10 nothing_runs
}
nothing_runs() {
  gp status --json >"$work/now.json" 2>/dev/null &&
    [ "$(value /running_jobs <"$work/now.json")$(value /queued_jobs <"$work/now.json")" = 00 ]
}

# The first GPU: a value of its health, and its state.
gpu_value() { gp health --gpu-id "$uuid" --json 2>/dev/null | value "$1"; }
gpu_is() { [ "$(gpu_value /gpu/state)" = "$1" ]; }
# Its memory in use in MiB, as the driver tells at this moment.
memory_mib() {
  limited 10 "$here/bin/gpu-acceptance" report --library "$nvml" --cuda "" 2>/dev/null >"$work/memory.json"
  bytes=$(value /gpus/0/reading/memory_used_bytes <"$work/memory.json") || bytes=0
  echo $((bytes / 1048576))
}
memory_at_least() { [ "$(memory_mib)" -ge "$1" ]; }
# The same while a job runs; gives up waiting if it has ended.
job_fills() {  # JOB MIB
  if job_ended "$1"; then wait_end=0; return 1; fi
  memory_at_least "$2"
}
memory_at_most() { [ "$(memory_mib)" -le "$1" ]; }

guard_is_held() { grep -q "\"guard\":\"$1\",\"held\":true" "$work/status.json"; }

# The middle of three numbers, one in a line; nothing if there are fewer.
median() { sort -n | sed -n '2h; 3{ g; p; }'; }
# A/B with three digits.
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.3f", a / b; else print "unknown" }'; }
# True if two numbers differ by no more than PERCENT of the larger, or than LEAST.
near() {  # A B PERCENT LEAST
  awk -v a="$1" -v b="$2" -v p="$3" -v least="$4" 'BEGIN {
    d = a > b ? a - b : b - a; m = (a > b ? a : b) * p / 100
    exit !(d <= m || d <= least) }'
}
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'; }

# Starts the daemon on the data directory of this run and waits for SECONDS until it answers.
start_daemon() {  # SECONDS
  "$here/bin/gpu-platform" serve --data-dir "$work/data" --socket "$work/socket" --config "$work/config.yaml" \
    >>"$work/serve.log" 2>&1 &
  daemon=$!
  wait_until "$1" daemon_answers
}
daemon_answers() {
  if ! kill -0 "$daemon" 2>/dev/null; then wait_end=0; return 1; fi
  gp status --json >"$work/status.json" 2>/dev/null
}
stop_daemon() {
  [ -n "$daemon" ] || return 0
  end_process "$daemon"
  daemon=
}
# Ends a process of this shell's, with SIGKILL if it is still there after 5 s; one that is stuck in a driver is left.
end_process() {  # PID
  kill "$1" 2>/dev/null
  wait_until 5 is_over "$1" || kill -9 "$1" 2>/dev/null
  if wait_until 5 is_over "$1"; then wait "$1" 2>/dev/null; fi
}
is_over() { case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in "" | Z*) ;; *) return 1 ;; esac; }

# The folder and the path of one of the driver's libraries; machines keep them in many places.
find_library() {  # NAME
  for place in ${GPU_ACCEPTANCE_DRIVER_DIR:-} \
    $(ldconfig -p 2>/dev/null | sed -n "s|.*$1 .*x86-64.* => \(.*\)/[^/]*$|\1|p") \
    /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/nvidia /usr/lib \
    /usr/lib/wsl/lib /run/opengl-driver/lib; do
    if [ -e "$place/$1" ]; then echo "$place/$1"; return; fi
  done
}
