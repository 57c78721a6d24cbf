# Power cuts under load; sourced by scripts/check_machine. A cut comes at a moment that the seed draws: while users submit,
# cancel and wait (three of four), or while the machine is still coming up after the last one. Two of three times the disk
# loses what was not flushed, else it saves its cache. After each, the daemon must come up with all that it acknowledged.

check_power() {
  local cut=1 kind disk ms began
  machine=$dir/power
  if (( resume )) && [[ -f $machine/cuts ]]; then
    cut=$(( $(wc -l <"$machine/cuts") + 1 ))
    say "power: goes on with cut $cut of $cuts"
  else
    new_machine power
    : >"$machine/ledger"; : >"$machine/cuts"
  fi
  for (( ; cut <= cuts; cut++ )); do
    draw "$cut"
    began=$(uptime_seconds)
    power_on
    wait_for_up 180 || { give_up "cut $cut: the machine does not boot"; return; }
    if [[ $kind == load ]]; then
      daemon_is_right "before cut $cut" || return
      begin_load || { give_up "cut $cut: nothing is acknowledged"; return; }
    fi
    sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
    pull_the_plug "$disk"
    # A line that was cut off ends here.
    echo >>"$machine/ledger"
    echo "$cut $kind $disk $ms" >>"$machine/cuts"
    say "power: cut $cut of $cuts, $ms ms into $kind, disk cache $disk, took $(seconds_since "$began") s; ${counts:-}"
  done
  power_on
  wait_for_up 180 || { give_up "after the last cut the machine does not boot"; return; }
  daemon_is_right "after the last cut" || return
  expect "$cuts power cuts (seed $seed): no acknowledged job lost, none run twice in one attempt: $counts" true
  inside "gpu-platform jobs release --all-users --yes" >/dev/null || true
  expect "all that was accepted comes to its end afterwards" until_inside 300 \
    "gpu-platform status --json | jq -e '.running_jobs + .queued_jobs == 0'"
  daemon_is_right "at the end" || return
  expect "each ended as it should" all_ended
  need inside "systemctl stop gpu-platform"
  expect "every record of the store verifies" inside "gpu-platform store check --data-dir /var/lib/gpu-platform"
  inside "echo 3 >/proc/sys/vm/drop_caches && said=\$(dmesg) && { grep -iE 'ext4.*error|corrupt' <<<\"\$said\"; true; }" \
    >"$machine/file-system" || expect "the kernel's log can be read" false
  expect "the file system has no complaint" test ! -s "$machine/file-system"
  pull_the_plug
}

# The moment counts from the first acknowledgement.
begin_load() {
  local before until=$((SECONDS + 120))
  before=$(grep -c '^accepted' "$machine/ledger" || true)
  inside "systemctl start load@alice load@bob" || return 1
  while (( $(grep -c '^accepted' "$machine/ledger" || true) == before )); do
    (( SECONDS < until )) || return 1
    sleep 0.05
  done
}

# draw CUT: sets kind, disk and ms from the seed and the number of the cut.
draw() {
  RANDOM=$(( (seed * 1000 + $1) % 32768 ))
  # The first number after a seed is near that of its neighbour.
  : $RANDOM $RANDOM
  (( RANDOM % 4 )) && kind=load || kind=start
  (( RANDOM % 3 )) && disk=lost || disk=kept
  ms=$(( RANDOM % 10000 ))
  [[ $kind == start ]] || ms=$(( ms + 500 ))
}

give_up() {
  expect "$1" false
  tail -15 "$machine/console.log" >&2
  pull_the_plug
}

# What the daemon knows now, against the ledger; sets $counts.
daemon_is_right() {
  local found
  until_inside 180 "gpu-platform status --json" ||
    { inside "journalctl -b --no-pager -n 30 -u 'gpu-platform*'" >&2; give_up "$1: the daemon does not come up"; return 1; }
  inside "gpu-platform jobs list --all --json | jq -r '.jobs[] | \"\(.id) \(.state) \(.attempt)\"'" >"$machine/jobs" ||
    { give_up "$1: the daemon does not list its jobs"; return 1; }
  if found=$(awk -f scripts/machine/compare.awk "$machine/jobs" "$machine/ledger"); then
    counts=$found
  else
    say "$found"
    give_up "$1: what was acknowledged holds"
    return 1
  fi
}

all_ended() { ! grep -vE ' (COMPLETED|CANCELLED) ' "$machine/jobs" >&2; }
