# Test programs that behave as GoogleTest's do, for the tests of the scripts that run them; sourced. Sets $world, a folder that is
# removed at the end, and $build, a build folder for ctest.
world=$(mktemp -d)
trap 'rm -rf "$world"' EXIT
build=${build:-$world/build}
mkdir -p "$build" "$world/report"
failures=0

# program NAME LABEL CASE=BEHAVIOUR...: BEHAVIOUR is ok, bad, skip, or a number of runs in which it fails first; CRASH=N
# ends the program without a report in the first N runs.
program() {
  local name=$1 label=$2
  shift 2
  {
    echo '#!/usr/bin/env bash'
    printf 'name=%q cases=(%s)\n' "$name" "$*"
    cat <<'PROGRAM'
runs() { local file=${0%/*}/$name.$1 n; n=$(cat "$file" 2>/dev/null || echo 0); echo $((n + 1)) >"$file"; echo "$n"; }
report=${GTEST_OUTPUT#xml:}/$name.xml lines= status=0
for case in "${cases[@]}"; do
  test=${case%=*} does=${case#*=}
  if [[ $test == CRASH ]]; then (( $(runs CRASH) < does )) && { echo "$name crashes"; kill -SEGV $$; }; continue; fi
  # shellcheck disable=SC2053 -- the right side is a glob
  [[ $test == ${GTEST_FILTER:-*} ]] || continue
  echo "[ RUN      ] $test"
  if [[ $does =~ ^[0-9]+$ ]]; then (( $(runs "$test") < does )) && does=bad || does=ok; fi
  result=completed inner=
  case $does in
    bad) status=1 inner="<failure message=\"$test went wrong\"></failure>"; echo "it is < 3 & wrong" ;;
    skip) result=skipped inner='<skipped message="a.cpp:1 no disk"></skipped>' ;;
    *) echo "all is well with $test" ;;
  esac
  [[ $does == bad ]] && echo "[  FAILED  ] $test (1 ms)" || echo "[       OK ] $test (1 ms)"
  lines+="    <testcase name=\"${test#*.}\" status=\"run\" result=\"$result\" classname=\"${test%.*}\">"$'\n'
  lines+="$inner"$'\n    </testcase>\n'
done
printf '<testsuites>\n%s</testsuites>\n' "$lines" >"$report"
exit "$status"
PROGRAM
  } >"$build/$name"
  chmod +x "$build/$name"
  printf 'add_test(%s "%s")\nset_tests_properties(%s PROPERTIES LABELS "%s")\n' "$name" "$build/$name" "$name" "$label" \
    >>"$build/CTestTestfile.cmake"
}

# run_programs: as scripts/test runs a stage; leaves $world/report/cases.
run_programs() {
  rm -rf "$world/report"
  mkdir -p "$world/report"
  GTEST_OUTPUT="xml:$world/report/" ctest --test-dir "$build" --output-on-failure --output-junit "$world/report/ctest.xml" \
    >/dev/null 2>&1 || true
  "$scripts/count_cases" "$world/report" >"$world/report/cases"
}

wrong() {
  printf '%s\n' "$*"
  failures=$((failures + 1))
}

# expect_lines WHAT FILE: the file has exactly the lines of standard input, in any order.
expect_lines() {
  LC_ALL=C diff <(LC_ALL=C sort) <(tr '\t' '|' <"$2" | LC_ALL=C sort) || wrong "$1"
}
