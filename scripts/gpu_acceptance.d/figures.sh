# Figures without a verdict: what the platform costs.

launch_rate() { sed -n 's/.* \([0-9.]*\) launches a second.*/\1/p'; }

check_overhead() {
  name=overhead
  has_time "$name" 66 || return
  has_cuda "$name" || return
  : >"$work/outside"
  : >"$work/inside"
  for round in 1 2 3; do
    limited 8 "$here/bin/gpu-acceptance" work --seconds 3 --cuda "$cuda" 2>&1 | launch_rate >>"$work/outside"
    limited 14 "$here/bin/gpu-platform" run --gpus 1 -- "$here/bin/gpu-acceptance" work --seconds 3 --cuda "$cuda" 2>&1 | launch_rate >>"$work/inside"
  done
  outside=$(median <"$work/outside")
  inside=$(median <"$work/inside")
  if [ -z "$outside" ] || [ -z "$inside" ]; then check "$name" failed "fewer than three results came"; clear_jobs; return; fi
  check "$name" passed "launches a second: $outside outside, $inside in a job: $(ratio "$inside" "$outside") (medians of 3)"
}

matrices='
import time, torch
n = 8192
a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
for _ in range(10): a @ b
torch.cuda.synchronize()
begin, count = time.monotonic(), 0
while time.monotonic() < begin + 3:
    for _ in range(20): c = a @ b
    torch.cuda.synchronize()
    count += 20
print("TFLOPS %.1f" % (2 * n ** 3 * count / (time.monotonic() - begin) / 1e12))
'

check_pytorch() {
  name=pytorch
  has_time "$name" 50 || return
  if ! version=$(limited 25 python3 -c 'import torch; torch.zeros(1, device="cuda"); print(torch.__version__)' 2>"$work/torch.err"); then
    check "$name" skipped "no python3 with a torch that finds a GPU within 25 s: $(tail -n 1 "$work/torch.err")"
    return
  fi
  outside=$(limited 20 python3 -c "$matrices" 2>"$work/torch.err" | sed -n 's/^TFLOPS //p')
  inside=$(limited 20 "$here/bin/gpu-platform" run --gpus 1 -- python3 -c "$matrices" 2>>"$work/torch.err" | sed -n 's/^TFLOPS //p')
  if [ -z "$outside" ] || [ -z "$inside" ]; then
    check "$name" failed "outside '$outside', in a job '$inside': $(tail -n 1 "$work/torch.err")"
    clear_jobs
  else
    check "$name" passed "torch $version, bf16, TFLOP/s: $outside outside, $inside in a job: $(ratio "$inside" "$outside")"
  fi
}

# The CPU time of some processes in microseconds; a tick of /proc/PID/stat is too coarse.
cpu_us() {  # PID...
  for pid; do cat /proc/"$pid"/task/*/schedstat 2>/dev/null; done | awk '{ sum += $1 } END { printf "%d", sum / 1000 }'
}

# Runs a command, and finds what the daemon and its processes take meanwhile: $cost ms of CPU each second, over $took ms.
daemon_cost() {  # COMMAND...
  probes=$(cat /proc/"$daemon"/task/*/children 2>/dev/null)
  before=$(cpu_us "$daemon" $probes)
  since=$(now)
  "$@"
  took=$(ms_since "$since")
  cost=$(awk -v a="$(($(cpu_us "$daemon" $probes) - before))" -v b="$took" 'BEGIN { printf "%.2f", a / b }')
}

# What the idle daemon takes, and then the probe beside a bare loop over the same functions. That
# comes last and without the daemon: a driver keeps what it has read for a moment, for any caller.
check_monitor() {
  name='cost of the monitor'
  has_time "$name" 55 || return
  daemon_cost sleep 10
  stop_daemon
  figures=$(limited 40 "$here/bin/probe_bench" driver 12 2>&1 | tail -n 1)
  rest="the idle daemon and its processes, reading each second: $cost ms of CPU each second"
  case $figures in
    polling*) check "$name" passed "$figures (aim: at most 1.20); $rest" ;;
    *) check "$name" failed "probe_bench: $figures; $rest" ;;
  esac
}
