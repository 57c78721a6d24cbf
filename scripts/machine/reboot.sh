# The machine starts anew in the middle of jobs; sourced by scripts/check_machine.

check_reboot() {
  local running held way before
  start_machine reboot || return 0
  for way in reboot "reboot --force"; do
    running=$(submit_as alice --gpus 1 -- sh -c 'echo attempt $GPU_PLATFORM_ATTEMPT; sleep 1000')
    held=$(submit_as bob --hold -- true)
    need until_printed "$running" 30 'attempt 1'
    before=$boot_id
    # The machine may be gone before it answers.
    inside "systemctl --no-block $way" >/dev/null || true
    wait_for_up 240 || { not_up; return 0; }
    expect "systemctl $way: another boot id" test "$boot_id" != "$before"
    expect "systemctl $way: the daemon is back" until_inside 180 "gpu-platform status --json"
    expect "systemctl $way: the job that ran was lost with its node" \
      until_inside 60 "gpu-platform jobs describe $running --json | jq -e '.attempts[0].lost == \"NODE_LOST\"'"
    expect "systemctl $way: it was put back into the queue and runs in its second attempt" until_printed "$running" 60 'attempt 2'
    expect "systemctl $way: the job that was held is" until_job "$held" HELD 10
    cancel "$running" "$held"
  done
  pull_the_plug
}
