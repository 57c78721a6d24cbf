# Some minutes of each reading, idle and at work, as the daemon's history has them: what they cost, and files of them.

record_s=${GPU_ACCEPTANCE_RECORDING:-300}  # of both halves together, at most 480; 0: none

utc() { date -u +%Y-%m-%dT%H:%M:%SZ; }
# Leaves out the host's name and the ends of UUIDs.
without_names() { sed "s/GPU-\([0-9a-f]\{8\}\)-[0-9a-f-]*/GPU-\1/g; s/^$node,/node,/; s/\"$node\"/\"node\"/g"; }

# The readings of all GPUs and the host from one time to another, as CSV. A question may have 64 metrics.
history_csv() {  # FROM TO
  "$here/bin/gpu-acceptance" metrics | sort -u | xargs -n 40 | tr ' ' ',' | while read -r metrics; do
    limited 60 "$here/bin/gpu-platform" history --node "$node" --metric "$metrics" --step 0 --from "$1" --to "$2" --csv </dev/null
  done | awk 'NR == 1 || !/^node,index,/' | without_names
}
# What is in such a file: the readings of the first GPU, values, metrics of GPUs, metrics of the host.
contents_of() {  # FILE
  awk -F, 'NR > 1 {
      values++
      if ($3 == "" && !host[$7]++) of_host++
      if ($3 != "" && !gpu[$7]++) of_gpus++
      if ($7 == "utilization_percent" && $2 == "0") readings++
    }
    END { printf "%d %d %d %d\n", readings, values, of_gpus, of_host }' "$1"
}
# The bytes of a value in one block of the file, and in long blocks.
sizes_of() {  # FILE
  limited 30 "$here/bin/telemetry_bench" --recording "$1" --benchmark_filter=recording --benchmark_format=csv 2>/dev/null |
    awk -F, '/^name,/ { for (i = 1; i <= NF; i++) column[$i] = i }
      /^"Encode\/recording/ { print $column["\"bytes_a_value\""], $column["\"bytes_a_further_value\""] }'
}
# The mean and greatest value of each metric of the first GPU that its driver counts by GPM.
gpm_of() {  # FILE
  awk -F, '$2 == "0" && $7 ~ /_(active|occupancy)_percent$/ {
      count[$7]++; sum[$7] += $11; if ($12 + 0 > most[$7] + 0) most[$7] = $12
    }
    END { for (one in count) printf "%s %.1f (at most %.1f)\n", one, sum[one] / count[one], most[one] }' "$1" |
    sort | tr '\n' ',' | sed 's/,$//; s/,/, /g'
}

# Runs a command, and keeps what was read meanwhile in the file PART.csv.
record() {  # PART COMMAND...
  part=$1
  shift
  from=$(utc)
  daemon_cost "$@"
  history_csv "$from" "$(utc)" >"$work/$part.csv" 2>"$work/history.err"
  read -r readings values gpu_metrics host_metrics <<END
$(contents_of "$work/$part.csv")
END
  if [ "$values" = 0 ]; then check "recording: $part" failed "nothing was read: $(tail -n 1 "$work/history.err")"; return; fi
  read -r block long <<END
$(sizes_of "$work/$part.csv")
END
  rate=$(ratio $((readings * 1000)) "$took")
  verdict=failed
  if at_most 0.9 "$rate"; then verdict=passed; fi
  check "recording: $part" "$verdict" "$rate readings of each GPU a second in $((took / 1000)) s; $values values of \
$gpu_metrics metrics of GPUs and $host_metrics of the host; ${block:-unknown} bytes a value in one block of these, \
${long:-unknown} in long blocks; the daemon and its processes: $cost ms of CPU each second"
}

# Works for SECONDS in a job.
work_in_job() {  # SECONDS
  id=$(submit_work --monitor -- work --seconds "$1" --rounds 200000)
  limited $(($1 + 30)) "$here/bin/gpu-platform" jobs wait "$id" --timeout $(($1 + 25))s >/dev/null 2>&1
}

check_gpm() {
  counted=$(gpm_of "$work/work.csv")
  if [ -n "$counted" ]; then
    check "recording: GPM" passed "at work: $counted"
  else
    check "recording: GPM" skipped "the driver counts nothing by GPM on this GPU"
  fi
}

# The summary of the job is to have as many readings as there were.
check_summary() {  # SECONDS
  gp monitor "$id" --json 2>"$work/monitor.err" | without_names >"$work/monitor.json"
  samples=$(value /sample_count <"$work/monitor.json") || samples=0
  figures="$samples readings in $1 s; utilization $(value /gpu_stats/0/utilization/mean <"$work/monitor.json") %, \
power $(value /gpu_stats/0/power_draw_w/mean <"$work/monitor.json") W on average, \
$(value /extra/gpus/0/energy_joules <"$work/monitor.json") J from $(value /extra/gpus/0/energy_from <"$work/monitor.json")"
  if at_most "$(($1 * 9 / 10))" "$samples"; then
    check "recording: monitor" passed "$figures"
  else
    check "recording: monitor" failed "$figures; $(job_end "$id"): $(last_line "$id") $(tail -n 1 "$work/monitor.err")"
  fi
}

check_recording() {
  [ "$record_s" != 0 ] || return 0
  limit_s=$((limit_s + record_s + 90))  # its time comes on top of that of the others
  has_time recording $((record_s + 85)) || return
  clear_jobs
  half=$((record_s / 2))
  node=$(value /gpus/0/node <"$work/status.json")
  record idle sleep "$half"
  has_cuda 'recording: work' || return
  record work work_in_job "$half"
  check_gpm
  check_summary "$half"
  clear_jobs
}
