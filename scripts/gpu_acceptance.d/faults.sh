# Checks of what goes wrong: killed jobs and daemons, processes of others, preemption, errors on the GPU.

check_killed_job() {
  name='killed job gives memory back'
  has_time "$name" 50 || return
  has_cuda "$name" || return
  before=$(memory_mib)
  total=$(gpu_value /gpu/memory_total_bytes)
  size=8192
  if [ $((total / 1048576)) -lt 16384 ]; then size=2048; fi
  id=$(submit_work -- work --seconds 60 --memory-mib $size)
  if ! wait_until 15 job_fills "$id" $((before + size)); then
    check "$name" failed "$size MiB were never in use: $(job_end "$id"): $(last_line "$id")"
    clear_jobs
    return
  fi
  since=$(now)
  gp jobs kill "$id" >/dev/null 2>&1
  wait_until 10 job_ended "$id" && wait_until 10 gpu_is AVAILABLE
  available=$(ms_since "$since")
  wait_until 10 memory_at_most $((before + 64))
  given_back=$(ms_since "$since")
  after=$(memory_mib)
  if job_is "$id" CANCELLED && gpu_is AVAILABLE && [ "$after" -le $((before + 64)) ]; then
    check "$name" passed "$size MiB; seen AVAILABLE after $available ms, memory $before MiB before and $after MiB seen after $given_back ms"
  else
    check "$name" failed "$(job_end "$id"); the GPU is $(gpu_value /gpu/state), memory $before MiB before, $after MiB after"
  fi
}

check_killed_daemon() {
  name='daemon killed'
  has_time "$name" 60 || return
  has_cuda "$name" || return
  before=$(memory_mib)
  id=$(submit_work -- work --seconds 6)
  if ! wait_until 15 job_fills "$id" $((before + 4)); then
    check "$name" failed "the job took no memory: $(job_end "$id"): $(last_line "$id")"
    clear_jobs
    return
  fi
  kill -9 "$daemon"
  end_process "$daemon"
  since=$(now)
  if ! start_daemon 15; then
    check "$name" failed "no new daemon got ready: $(tail -n 1 "$work/serve.log")"
    return
  fi
  ready=$(ms_since "$since")
  adopted=$(job_value "$id" /state)
  wait_until 20 job_ended "$id"
  attempts=$(job_value "$id" /attempt)
  if [ "$adopted" = RUNNING ] && job_is "$id" COMPLETED && [ "$attempts" = 1 ]; then
    check "$name" passed "a new one answered after $ready ms and adopted the job: $(last_line "$id"); one attempt"
  else
    check "$name" failed "after the restart the job was $adopted; $(job_end "$id"), $attempts attempts: $(last_line "$id")"
  fi
}

# The GPU's reason names the process as soon as two readings in a row had it; from then on no job gets the GPU.
unmanaged_is_shown() {  # PID
  gpu_value /gpu/unmanaged_processes >"$work/unmanaged"
  grep -q "\"pid\":$1[,}]" "$work/unmanaged" && gpu_value /gpu/reason | grep -q "unmanaged processes: pid $1 "
}
gpu_is_clean() { gpu_is AVAILABLE && [ "$(gpu_value /gpu/unmanaged_processes)" = '[]' ]; }

check_unmanaged() {
  name='unmanaged process'
  has_time "$name" 60 || return
  has_cuda "$name" || return
  if [ "$seen" != 1 ]; then check "$name" skipped "the driver lists no processes here"; return; fi
  "$here/bin/gpu-acceptance" work --seconds 60 --cuda "$cuda" >"$work/unmanaged.out" 2>&1 &
  other=$!
  since=$(now)
  wait_until 15 unmanaged_is_shown "$other"
  is_shown=$?
  shown=$(ms_since "$since")
  id=$(submit -- true)
  wait_until 5 waits "$id"
  is_kept=$?
  end_process "$other"
  other=
  since=$(now)
  wait_until 15 job_is "$id" COMPLETED
  took=$(ms_since "$since")
  wait_until 10 gpu_is_clean
  if [ "$is_shown$is_kept" = 00 ] && job_is "$id" COMPLETED && gpu_is_clean; then
    check "$name" passed "shown with its pid after $shown ms; a job waited ($(cat "$work/reason")) and ended $took ms after the process"
  else
    check "$name" failed "shown: $(cat "$work/unmanaged" 2>/dev/null); the job: $(job_end "$id"); the GPU is $(gpu_value /gpu/state); $(tail -n 1 "$work/unmanaged.out")"
    clear_jobs
  fi
}

was_preempted() { [ "$(job_value "$1" /preemptions)" = 1 ]; }

check_preemption() {
  name=preemption
  has_time "$name" 50 || return
  before=$(memory_mib)
  if [ -n "$cuda" ]; then
    low=$(submit_work --priority low -- work --seconds 3)
    wait_until 10 job_fills "$low" $((before + 4))
  else
    low=$(submit --priority low -- sleep 3)
  fi
  if ! wait_until 5 job_is "$low" RUNNING; then
    check "$name" failed "the low job: $(job_end "$low")"
    clear_jobs
    return
  fi
  since=$(now)
  high=$(submit --priority high -- sleep 1)
  wait_until 10 job_is "$high" RUNNING
  took=$(ms_since "$since")
  wait_until 10 job_is "$high" COMPLETED
  wait_until 15 job_ended "$low"
  if job_is "$high" COMPLETED && job_is "$low" COMPLETED && was_preempted "$low"; then
    check "$name" passed "the high job was seen running after $took ms; the low one completed in attempt $(job_value "$low" /attempt): $(last_line "$low")"
  else
    check "$name" failed "high: $(job_end "$high"); low: $(job_end "$low"), $(job_value "$low" /preemptions) preemptions"
    clear_jobs
  fi
}

xid_is_shown() { gpu_value /xids/0/xid >"$work/xid"; }

check_xid() {
  name=XID
  has_time "$name" 35 || return
  has_cuda "$name" || return
  id=$(submit_work -- fault)
  wait_until 15 job_ended "$id"
  if ! job_is "$id" FAILED || [ "$(job_value "$id" /exit_code)" != 70 ]; then
    check "$name" failed "no fault: $(job_end "$id"): $(last_line "$id")"
    return
  fi
  since=$(now)
  wait_until 10 xid_is_shown
  took=$(ms_since "$since")
  wait_until 5 gpu_is AVAILABLE
  if ! gpu_is AVAILABLE; then
    check "$name" failed "the GPU is $(gpu_value /gpu/state) after $(last_line "$id"): $(gpu_value /gpu/reason)"
  elif [ ! -s "$work/xid" ]; then
    check "$name" skipped "the driver reported none; the job failed with exit code 70 ($(last_line "$id")), the GPU is AVAILABLE"
  else
    case $(cat "$work/xid") in
      13 | 31) check "$name" passed "XID $(cat "$work/xid") shown within $took ms; the job failed with exit code 70 ($(last_line "$id")), the GPU is AVAILABLE" ;;
      *) check "$name" failed "XID $(cat "$work/xid"), not 31 or 13; $(last_line "$id")" ;;
    esac
  fi
}
