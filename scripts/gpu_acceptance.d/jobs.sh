# Checks of ordinary work: the daemon, jobs on GPUs, their devices, their order, their users.

check_daemon() {
  printf 'monitoring:\n  interval_seconds: 1\npolicies:\n  preempt_min_runtime: 0s\n' >"$work/config.yaml"
  # The jobs are root's mostly, which could undo the walls of their parts.
  printf 'sharing:\n  slice: %sms\n  weakest_rung: advisory\n' "$slice_ms" >>"$work/config.yaml"
  # A host without an ordinary account has those of the system, which may have jobs in this run.
  least_uid=1000
  [ -n "$(other_user)" ] || least_uid=1
  printf 'execution:\n  min_uid: %s\n' "$least_uid" >>"$work/config.yaml"
  start_daemon 60
  gpus=$(value /total_gpus <"$work/status.json") || gpus=
  if [ -z "$gpus" ]; then
    check daemon failed "it did not get ready: $(tail -n 1 "$work/serve.log")"
    gpus=0
  elif [ "$gpus" = 0 ]; then
    check daemon failed "it sees no GPU: $(grep -i 'note=' "$work/serve.log" | tail -n 1)"
  else
    uuid=$(value /gpus/0/uuid <"$work/status.json")
    advisory=$(sed 's/},{/\n/g' "$work/status.json" | sed -n 's/.*"guard":"\([^"]*\)","held":false.*/\1/p' | tr '\n' ' ')
    check daemon passed "it sees $gpus GPU(s); guards that are advisory: ${advisory:-none}"
  fi
}

check_doctor() {
  has_time doctor 30 || return
  limited 30 "$here/bin/gpu-platform" doctor --json >"$work/doctor.json" 2>&1
  verdict=$(value /verdict <"$work/doctor.json") || verdict='no verdict'
  warned=$(sed 's/},{/\n/g' "$work/doctor.json" | sed -n 's/.*"check":"\([^"]*\)","verdict":"[wb].*/\1/p' | tr '\n' ' ')
  if [ "$verdict" != bad ] && grep -q "a daemon answers at unix:$work/socket" "$work/doctor.json"; then
    check doctor passed "verdict: $verdict${warned:+; advice on: $warned}"
  else
    check doctor failed "verdict: $verdict; $(sed 's/},{/\n/g' "$work/doctor.json" | grep '"service"')"
  fi
}

# A job of some seconds; while it runs the driver is to list a process, and the readings are compared.
check_job() {
  has_time job 40 || return
  has_cuda job || return
  id=$(submit_work -- work --seconds 7 --rounds 200000)
  if wait_until 10 process_is_listed; then seen=1; cp "$work/memory.json" "$work/during.json"; fi
  compare_readings "$id"
  wait_until 15 job_ended "$id"
  if job_is "$id" COMPLETED; then
    check job passed "$(last_line "$id")"
  else
    check job failed "$(job_end "$id"): $(last_line "$id")"
  fi
  if [ "$seen" = 1 ]; then
    check "job seen on its GPU" passed "the driver lists a process while it runs"
  else
    check "job seen on its GPU" skipped "the driver lists no process (as in a container with a pid namespace of its own)"
  fi
}
process_is_listed() {
  if job_ended "$id"; then wait_end=0; fi
  memory_mib >/dev/null
  grep -q '"pid":' "$work/memory.json"
}

readings_name='readings under load'
compare_readings() {  # JOB
  if [ -z "$smi" ]; then check "$readings_name" skipped "no nvidia-smi"; return; fi
  if ! wait_until 12 readings_agree "$1"; then
    check "$readings_name" failed "${readings:-no readings came}; tolerances: utilization 25 points and above 50, power 25 %, clock 10 %, memory 64 MiB"
  else
    check "$readings_name" passed "$readings"
  fi
}
readings_agree() {  # JOB
  if job_ended "$1"; then wait_end=0; return 1; fi
  gp health --gpu-id "$uuid" --json >"$work/health.json" 2>/dev/null
  theirs=$(limited 10 "$smi" -i "$uuid" --query-gpu=utilization.gpu,power.draw,memory.used,clocks.sm --format=csv,noheader,nounits | tr -d ',')
  set -- $theirs
  [ $# -eq 4 ] || return 1
  use=$(value /gpu/utilization_percent <"$work/health.json") || return 1
  power=$(value /gpu/power_watts <"$work/health.json") || return 1
  memory=$(value /gpu/memory_used_bytes <"$work/health.json") || return 1
  clock=$(value /clock_sm_mhz <"$work/health.json") || return 1
  memory=$((memory / 1048576))
  readings="ours / nvidia-smi: utilization $use / $1 %, power $power / $2 W, memory $memory / $3 MiB, SM clock $clock / $4 MHz"
  at_most 51 "$use" && near "$use" "$1" 0 25 && near "$power" "$2" 25 5 && near "$memory" "$3" 0 64 && near "$clock" "$4" 10 30
}

# Prints those of the device nodes given that can be opened.
openable='for d; do if (exec 3<"$d") 2>/dev/null; then echo "$d"; fi; done'

check_no_device() {
  name='no GPU, no device'
  has_time "$name" 40 || return
  if ! guard_is_held devices; then check "$name" skipped "the daemon does not hold devices by the kernel"; return; fi
  nodes=$(ls /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm 2>/dev/null | tr '\n' ' ')
  outside=$(sh -c "$openable" sh $nodes | wc -l)
  if [ "$outside" -lt 1 ]; then check "$name" skipped "no node in /dev that can be opened here"; return; fi
  without=$(gp run --gpus 0 -- sh -c "$openable; echo end" sh $nodes 2>/dev/null | tr '\n' ' ')
  with=$(gp run --gpus 1 -- sh -c "$openable" sh $nodes 2>/dev/null | wc -l)
  if [ "$without" = 'end ' ] && [ "$with" -ge 1 ]; then
    check "$name" passed "$outside nodes open outside, none in a job without a GPU, $with in one with a GPU"
  else
    check "$name" failed "$outside nodes open outside; in a job without a GPU: ${without:-it did not run}; with a GPU: $with"
  fi
}

# Whether a job sees its GPU alone, by nvidia-smi and by CUDA.
check_only_its_gpu() {
  name='only its GPU'
  has_time "$name" 40 || return
  if [ -z "$smi$cuda" ]; then check "$name" skipped "neither nvidia-smi nor libcuda"; return; fi
  gp run --gpus 1 -- sh -c 'echo "$GPU_PLATFORM_GPU_UUIDS"
    [ -z "$1" ] || "$1" -L | sed -n "s/.*UUID: \(GPU-[^)]*\)).*/nvidia-smi \1/p"
    [ -z "$2" ] || "$3" gpus --cuda "$2" | sed "s/^/CUDA /"' \
    sh "$smi" "$cuda" "$here/bin/gpu-acceptance" >"$work/seen" 2>"$work/seen.err"
  own=$(head -n 1 "$work/seen")
  wrong=
  for source in ${smi:+nvidia-smi} ${cuda:+CUDA}; do
    if [ "$(sed -n "s/^$source //p" "$work/seen")" != "${own:-none}" ]; then wrong="$wrong $source"; fi
  done
  if [ -z "$wrong" ]; then
    check "$name" passed "$own of $gpus by${smi:+ nvidia-smi}${cuda:+ CUDA}"
  else
    check "$name" failed "a job with '$own' sees otherwise by$wrong: $(tr '\n' ' ' <"$work/seen") $(tail -n 1 "$work/seen.err")"
  fi
}

waits() { job_is "$1" QUEUED && job_value "$1" /wait_reason/text >"$work/reason"; }

check_one_at_a_time() {
  name='one at a time'
  has_time "$name" 30 || return
  first=$(submit -- sleep 3)
  second=$(submit -- true)
  if ! wait_until 5 waits "$second" || ! job_is "$first" RUNNING; then
    check "$name" failed "the first: $(job_end "$first"); the second: $(job_end "$second")"
    clear_jobs
    return
  fi
  wait_until 15 job_is "$second" COMPLETED
  ended=$(job_value "$first" /ended_at)
  started=$(job_value "$second" /started_at)
  if [ -n "$ended" ] && [ -n "$started" ] && [ "$(printf '%s\n%s\n' "$ended" "$started" | sort | head -n 1)" = "$ended" ]; then
    check "$name" passed "the second waited ($(cat "$work/reason")) and ran when the first had ended"
  else
    check "$name" failed "the first: $(job_end "$first"), ended $ended; the second: $(job_end "$second"), started $started"
  fi
}

check_turnaround() {
  name='GPU turnaround'
  has_time "$name" 35 || return
  id=$(submit --array 0-20 --name turnaround -- true)
  limited 30 "$here/bin/gpu-platform" jobs wait "$id" --timeout 25s >/dev/null 2>&1
  code=$?
  gp jobs list --all --json --name turnaround >"$work/turnaround.json" 2>/dev/null
  if [ "$code" = 0 ] && figures=$("$here/bin/gpu-acceptance" turnaround <"$work/turnaround.json"); then
    check "$name" passed "from exit to next start, jobs on $gpus GPU(s): $figures; aim: p50 20 ms, p99 100 ms"
  else
    check "$name" failed "the jobs did not all complete (exit code $code)"
    clear_jobs
  fi
}

# The platform's command line, as another user: the first account of the host whose number a job may have.
other_user() {
  most=$(awk '$1 == "UID_MAX" { print $2 }' /etc/login.defs 2>/dev/null | tail -n 1)
  awk -F: -v least="$least_uid" -v most="${most:-60000}" '$3 >= least + 0 && $3 <= most + 0 && $3 < 65534 { print $1, $3, $4; exit }' /etc/passwd
}
as_other() { limited 20 setpriv --reuid "$other_uid" --regid "$other_gid" --clear-groups env HOME=/ "$@"; }

check_other_user() {
  name='another user'
  has_time "$name" 60 || return
  if [ "$(id -u)" != 0 ]; then check "$name" skipped "not root"; return; fi
  if ! command -v setpriv >/dev/null; then check "$name" skipped "no setpriv"; return; fi
  read -r account other_uid other_gid <<EOF
$(other_user)
EOF
  if [ -z "$account" ]; then check "$name" skipped "no account has a number that jobs may have"; return; fi
  reach_bundle || { check "$name" skipped "$account can run the bundle nowhere"; return; }
  own=$(submit -- sleep 30)
  wait_until 5 job_is "$own" RUNNING
  refusal=$(cd / && as_other "$reachable/bin/gpu-platform" jobs cancel "$own" 2>&1)
  refused=$?
  wait_until 1 job_ended "$own"
  kept=$(job_value "$own" /state)
  clear_jobs
  seen_uid=$(cd / && as_other "$reachable/bin/gpu-platform" run --gpus 1 -- sh -c 'echo "uid $(id -u) $GPU_PLATFORM_GPU_UUIDS"' 2>"$work/other.err")
  if [ "${seen_uid#uid "$other_uid" GPU-}" != "$seen_uid" ] && [ "$refused" != 0 ] && [ "$kept" = RUNNING ]; then
    check "$name" passed "$account ran a job on a GPU as uid $other_uid; root's job was not cancelled ($refusal)"
  else
    check "$name" failed "the job printed '$seen_uid' ($(tail -n 1 "$work/other.err")); the cancellation ended with $refused ($refusal), root's job is $kept"
  fi
}
# Finds a folder with the programs that the other user can reach, or copies them to one.
reach_bundle() {
  reachable=$here
  if as_other "$reachable/bin/gpu-platform" version >/dev/null 2>&1; then return; fi
  reachable=$work/bundle
  mkdir -p "$reachable" && cp -R "$here/bin" "$here/lib" "$here/programs" "$reachable/" && chmod -R a+rX "$reachable"
  as_other "$reachable/bin/gpu-platform" version >/dev/null 2>&1
}

check_slurm() {
  name="Slurm's commands"
  has_time "$name" 60 || return
  mkdir "$work/slurm"
  for command in srun squeue sinfo; do ln -s "$here/programs/gpu-platform-slurm" "$work/slurm/$command"; done
  if ! slurm sinfo --version >"$work/slurm.out" 2>&1; then
    check "$name" skipped "they do not run with this machine's C library: $(tail -n 1 "$work/slurm.out")"
    return
  fi
  wrong=
  printed=$(slurm srun --gres=gpu:1 sh -c '"$1" -L 2>/dev/null || echo "$GPU_PLATFORM_GPU_UUIDS"' sh "${smi:-false}" 2>"$work/slurm.err" | tail -n 1)
  case $printed in *GPU-*) ;; *) wrong="srun printed '$printed' ($(tail -n 1 "$work/slurm.err"))" ;; esac
  own=$(submit -- sleep 20)
  wait_until 5 job_is "$own" RUNNING
  slurm squeue -h -o '%i %t' 2>&1 | grep -q "^$own R" || wrong="$wrong squeue lacks job $own: $(slurm squeue 2>&1 | tail -n 1)"
  slurm sinfo 2>&1 | grep -q "$(uname -n)" || wrong="$wrong sinfo lacks the node: $(slurm sinfo 2>&1 | tail -n 1)"
  clear_jobs
  if [ -z "$wrong" ]; then check "$name" passed "srun printed: $printed; squeue and sinfo agree"; else check "$name" failed "$wrong"; fi
}
# These start themselves again in a job, so they run with the machine's loader.
slurm() {
  slurm_command=$1
  shift
  limited 10 env LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$work/slurm/$slurm_command" "$@"
}
