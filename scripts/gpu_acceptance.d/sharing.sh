# Checks of parts of a GPU: turns, MPS, and what holds jobs to the memory of their parts.

slice_ms=500  # as the daemon of this run is configured

# Submits CUDA work with a part of a GPU and prints its id: SHARE MODE OPTIONS... -- VERB OPTIONS...
submit_part() (  # in a shell of its own, as submit asks for $gpus
  gpus=$1
  mode=$2
  shift 2
  submit_work --share "$mode" "$@"
)

# True if the platform gives parts in that mode here; otherwise the check NAME is skipped in the platform's words.
has_mode() {  # NAME MODE
  if ! id=$(gp submit --gpus 0.5 --share "$2" --time 1m -- true 2>"$work/mode.err"); then
    verdict=failed
    if gp status >/dev/null 2>&1; then verdict=skipped; fi  # it refuses such a part
    check "$1" "$verdict" "$(head -n 1 "$work/mode.err")"
    return 1
  fi
  if wait_until 10 job_is "$id" COMPLETED; then return; fi
  check "$1" failed "a job with half a GPU and --share $2: $(job_end "$id")"
  clear_jobs
  return 1
}

# Compares what jobs did that ran beside each other: sets $rounds, $rate (launches a second of all) and $shares.
compare_launches() {  # ROUND_MS JOB...
  round=$1
  shift
  outputs=
  for id; do
    gp jobs logs "$id" >"$work/launches.$id" 2>&1
    outputs="$outputs $work/launches.$id"
  done
  rounds='' rate='' shares=''
  read -r rounds rate shares <<END
$("$here/bin/gpu-acceptance" shares "$round" 10 $outputs)
END
  [ -n "$shares" ]
}

# The launches a second of a job that has a whole GPU to itself, in $alone.
run_alone() {  # ROUNDS
  alone=
  id=$(submit_work -- launches --seconds 4 --rounds "$1")
  wait_until 12 job_ended "$id"
  compare_launches 1000 "$id" && alone=$rate
}

# Runs one job for each SHARE beside each other, then compares them in rounds of ROUND_MS. The jobs run for longer than
# ten rounds: a job that starts in short turns begins its work seconds after the others.
run_together() {  # MODE SECONDS ROUNDS ROUND_MS SHARE...
  mode=$1 seconds=$2 kernel=$3 round=$4
  shift 4
  ids=
  for share; do ids="$ids $(submit_part "$share" "$mode" -- launches --seconds "$seconds" --rounds "$kernel")"; done
  for id in $ids; do wait_until $((seconds + 12)) job_ended "$id" || break; done
  compare_launches "$round" $ids
}

# True if each share is what it should be, within so much of a GPU.
shares_are() {  # WANTED GOT WITHIN
  awk -v wanted="$1" -v got="$2" -v within="$3" 'BEGIN {
    n = split(wanted, w, " ")
    if (split(got, g, " ") != n) exit 1
    for (i = 1; i <= n; i++) { d = g[i] - w[i]; if (d > within || -d > within) exit 1 }
  }'
}

# What became of jobs, for a failed check.
ends_of() {
  for id; do echo "$id: $(job_end "$id"): $(last_line "$id");"; done
}

# A kernel of some 5 ms: short beside a turn, and long beside the way to the GPU.
slice_kernel=50000

check_time_slices() {
  name='time slices'
  has_time "$name" 80 || return
  has_cuda "$name" || return
  has_mode "$name" time-slice || return
  run_alone "$slice_kernel"
  told=
  verdict=passed
  for wanted in '0.5 0.5' '0.25 0.75'; do
    if ! run_together time-slice 18 "$slice_kernel" $((2 * slice_ms)) $wanted; then
      check "$name" failed "parts $wanted did not run beside each other: $(ends_of $ids)"
      clear_jobs
      return
    fi
    sum=$(ratio "$rate" "${alone:-0}")
    told="$told; parts $wanted did $shares of $rate launches a second, $sum of one alone, in $((rounds * 2)) slices of $slice_ms ms"
    if [ "$rounds" != 10 ] || ! shares_are "$wanted" "$shares" 0.01 || ! at_most 0.9 "${sum#unknown}"; then verdict=failed; fi
  done
  check "$name" "$verdict" "${alone:-unknown} launches a second alone$told; aims: shares within 0.01, a sum of at least 0.99"
}

# A kernel of some 17 ms: beside it, copying the results hardly counts, which no percentage holds back.
mps_kernel=200000

check_mps_shares() {
  name='MPS: shares'
  has_time "$name" 45 || return
  has_cuda "$name" || return
  has_mode "$name" mps || return
  run_alone "$mps_kernel"
  if ! run_together mps 9 "$mps_kernel" 1000 0.7 0.3; then
    check "$name" failed "parts 0.7 0.3 did not run beside each other: $(ends_of $ids)"
    clear_jobs
    return
  fi
  sum=$(ratio "$rate" "${alone:-0}")
  verdict=passed
  if ! shares_are '0.7 0.3' "$shares" 0.05 || ! at_most 0.9 "${sum#unknown}"; then verdict=failed; fi
  check "$name" "$verdict" "${alone:-unknown} launches a second alone; parts 0.7 0.3 did $shares of $rate, $sum of one alone; aims: shares within 0.05, a sum of at least 0.9"
}

check_mps_memory() {
  name='MPS: memory'
  has_time "$name" 30 || return
  has_cuda "$name" || return
  has_mode "$name" mps || return
  id=$(submit_part 0.5 mps --gpu-memory 2G -- work --seconds 2 --memory-mib 4096)
  wait_until 10 job_ended "$id"
  rung=$(job_value "$id" /attempts/0/gpus/0/memory_rung) || rung=unknown
  refusal=$(last_line "$id")
  case $(job_value "$id" /state),$refusal in
    FAILED,*'cuMemAlloc answers 2'*) check "$name" passed "4 GiB were refused in a part with 2 GiB ($refusal); the rung is $rung" ;;
    *)
      if [ "$rung" = MPS_LIMIT ]; then
        check "$name" failed "4 GiB in a part with 2 GiB: $(ends_of "$id")"
      else
        check "$name" skipped "nothing refuses memory here, the rung is $rung: $(ends_of "$id")"
      fi
      clear_jobs
      ;;
  esac
}

# A job that holds 2 GiB and computes, in $neighbour, when it has them.
begin_neighbour() {  # SECONDS ROUNDS
  before=$(memory_mib)
  neighbour=$(submit_part 0.5 mps -- work --seconds "$1" --rounds "$2" --memory-mib 2048)
  wait_until 10 job_fills "$neighbour" $((before + 2048))
}

# True if the driver says that the GPU was busy for most of the last moment.
gpu_computes() {
  memory_mib >/dev/null
  at_most 50 "$(value /gpus/0/reading/utilization_percent <"$work/memory.json")"
}

# A job of a second beside what is there, in $newcomer; sets $took to the milliseconds until it had ended.
run_newcomer() {
  since=$(now)
  newcomer=$(submit_part 0.25 mps -- work --seconds 1)
  wait_until 15 job_ended "$newcomer"
  took=$(ms_since "$since")
  job_is "$newcomer" COMPLETED
}

# An illegal address in one client is a fatal error of each client of its server. The neighbour is to run again.
check_mps_fault() {
  name='MPS: fault of a neighbour'
  has_time "$name" 70 || return
  has_cuda "$name" || return
  has_mode "$name" mps || return
  if ! begin_neighbour 8 20000; then
    check "$name" failed "the neighbour took no memory: $(ends_of "$neighbour")"
    clear_jobs
    return
  fi
  faulty=$(submit_part 0.5 mps -- fault)
  wait_until 10 job_ended "$faulty"
  run_newcomer
  serves=$?
  wait_until 25 job_ended "$neighbour"
  first=$(job_value "$neighbour" /attempts/0/detail) || first="exit code $(job_value "$neighbour" /attempts/0/exit_code)"
  if job_is "$faulty" FAILED && [ "$(job_value "$faulty" /exit_code)" = 70 ] && [ "$serves" = 0 ] &&
    job_is "$neighbour" COMPLETED && [ "$(job_value "$neighbour" /attempt)" = 2 ]; then
    check "$name" passed "the fault: $(last_line "$faulty"); its neighbour completed in attempt 2 (attempt 1: $first); a new job completed after $took ms"
  else
    check "$name" failed "faulty $(ends_of "$faulty") neighbour $(ends_of "$neighbour") its attempt 1: $first; new $(ends_of "$newcomer")"
    clear_jobs
  fi
}

check_mps_killed() {
  name='MPS: client killed in a kernel'
  has_time "$name" 70 || return
  has_cuda "$name" || return
  has_mode "$name" mps || return
  # Kernels of some 90 ms, one after the other: SIGKILL meets it inside one.
  if ! begin_neighbour 60 1000000 || ! wait_until 10 gpu_computes; then
    check "$name" failed "it took no memory, or did not compute: $(ends_of "$neighbour")"
    clear_jobs
    return
  fi
  killed=$neighbour
  beside=$(submit_part 0.25 mps -- work --seconds 4)
  wait_until 5 job_is "$beside" RUNNING
  gp jobs kill "$killed" >/dev/null 2>&1
  wait_until 10 job_ended "$killed"
  run_newcomer
  serves=$?
  wait_until 10 job_ended "$beside"
  if job_is "$killed" CANCELLED && [ "$serves" = 0 ]; then
    check "$name" passed "a new job completed after $took ms; the job beside it: $(job_end "$beside"), attempt $(job_value "$beside" /attempt)"
  else
    check "$name" failed "killed $(ends_of "$killed") new $(ends_of "$newcomer") beside it $(ends_of "$beside")"
  fi
  clear_jobs
}

check_part_memory() {
  name='memory of a part'
  has_time "$name" 40 || return
  has_cuda "$name" || return
  has_mode "$name" time-slice || return
  before=$(memory_mib)
  id=$(submit_part 0.5 time-slice --gpu-memory 2G -- work --seconds 60 --memory-mib 4096)
  if ! wait_until 10 job_fills "$id" $((before + 4096)); then
    check "$name" failed "4 GiB were never in use: $(ends_of "$id")"
    clear_jobs
    return
  fi
  since=$(now)
  wait_until 20 job_ended "$id"
  took=$(ms_since "$since")
  gp jobs logs "$id" >"$work/over.log" 2>&1
  if job_is "$id" FAILED && [ "$(job_value "$id" /reason)" = GPU_MEMORY ] && grep -q 'gpu-platform: the job uses' "$work/over.log"; then
    check "$name" passed "a job with 4 GiB in a part of 2 GiB was warned, and stopped $took ms after it had them: $(job_value "$id" /attempts/0/detail)"
  else
    check "$name" failed "warned: $(grep -c 'gpu-platform: the job uses' "$work/over.log"); $(ends_of "$id")"
    clear_jobs
  fi
}

# All of them together take no more than three minutes.
check_sharing() {
  whole_limit_s=$limit_s
  sharing_until=$(((($(now) - began) / 100) + 180))
  if [ "$sharing_until" -lt "$limit_s" ]; then limit_s=$sharing_until; fi
  check_time_slices
  check_part_memory
  check_mps_shares
  check_mps_memory
  check_mps_fault
  check_mps_killed
  limit_s=$whole_limit_s
}
