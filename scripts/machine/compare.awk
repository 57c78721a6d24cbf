# compare.awk JOBS LEDGER: what the daemon knows of jobs after a power cut, against what it had acknowledged before.
# JOBS: lines "ID STATE ATTEMPT" as listed now. LEDGER: lines that were written outside of the machine,
#   accepted ID . | cancelled ID . | completed ID . | ran ID ATTEMPT .
# of which one may be cut off or joined with the next. Prints a line for each promise that was broken, then one line
# with the counts. Exit 1 where one was.
function wrong(text) { print "BROKEN: " text; broken++ }

FILENAME == ARGV[1] { state[$1] = $2; attempt[$1] = $3; next }
$NF != "." { next }
$1 == "accepted" && NF == 3 { accepted[$2] = 1 }
$1 == "cancelled" && NF == 3 { cancelled[$2] = 1 }
$1 == "completed" && NF == 3 { completed[$2] = 1 }
$1 == "ran" && NF == 4 {
  if (++ran[$2 " " $3] == 2) wrong("job " $2 " ran twice in attempt " $3)
  if ($3 > last[$2]) last[$2] = $3
  runs++
}
END {
  for (id in accepted) {
    acknowledged++
    if (!(id in state)) wrong("job " id " was accepted and is lost")
  }
  for (id in cancelled) {
    withdrawn++
    if (state[id] != "CANCELLED") wrong("job " id " was cancelled and is " state[id])
    if (id in last) wrong("job " id " was cancelled before it began, and ran")
  }
  for (id in completed) {
    done++
    if (state[id] != "COMPLETED") wrong("job " id " was seen COMPLETED and is " state[id])
  }
  # An attempt is on disk before its process is there.
  for (id in last) if (attempt[id] + 0 < last[id]) {
    wrong("job " id " ran in attempt " last[id] ", of which the daemon knows nothing (" attempt[id] + 0 ")")
  }
  printf "%d accepted, %d cancelled, %d completed, %d runs\n", acknowledged, withdrawn, done, runs
  exit broken > 0
}
