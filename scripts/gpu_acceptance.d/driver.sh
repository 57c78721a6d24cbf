# Checks without a daemon: what the driver tells, and the structures in which it does so.

check_discovery() {
  echo '{}' >"$work/report.json"
  if [ -z "$nvml" ]; then
    check library failed "no libnvidia-ml.so.1 on this machine"
    return
  fi
  if limited 60 "$here/bin/gpu-acceptance" report --library "$nvml" --nvidia-smi "$smi" --cuda "$cuda" \
    >"$work/report.out" 2>"$work/report.err"; then
    cp "$work/report.out" "$work/report.json"
    check discovery passed "$(grep -c '"uuid"' "$work/report.json") GPU(s) by $nvml; found in $(value /discovery_ms <"$work/report.json") ms"
  else
    if [ -s "$work/report.out" ]; then cp "$work/report.out" "$work/report.json"; fi
    check discovery failed "$(tail -n 1 "$work/report.err") $(value /problem <"$work/report.json")"
  fi
}

check_smi() {
  if ! differences=$(value /compared/differences <"$work/report.json"); then
    check nvidia-smi skipped "not compared: $(value /compared/problem <"$work/report.json")"
  elif [ "$differences" = 0 ]; then
    check nvidia-smi passed "$(value /compared/data <"$work/report.json") data agree"
  else
    check nvidia-smi failed "$differences data differ"
  fi
}

# Lets the compiler compare the size of one structure with the vendor's: right, wrong or unknown.
size_is() {  # HEADER NAME SIZE
  include=$(dirname "$1")
  printf '#include <nvml.h>\n%s value;\n' "$2" >"$work/known.c"
  "$compiler" -I"$include" -fsyntax-only "$work/known.c" 2>/dev/null || { echo unknown; return; }
  printf '#include <nvml.h>\ntypedef char check[sizeof(%s) == %s ? 1 : -1];\n' "$2" "$3" >"$work/struct.c"
  if "$compiler" -I"$include" -fsyntax-only "$work/struct.c" 2>/dev/null; then echo right; else echo wrong; fi
}

check_structures() {
  header=${GPU_ACCEPTANCE_HEADER:-}  # an nvml.h elsewhere
  [ -n "$header" ] || header=$(find /usr/local/cuda*/include /usr/local/cuda*/targets/*/include /usr/include \
    /opt/cuda*/include -maxdepth 1 -name nvml.h 2>/dev/null | head -n 1)
  compiler=$(command -v cc || command -v gcc || command -v clang || true)
  if [ -z "$header" ]; then check structures skipped "no nvml.h on this machine"; return; fi
  if [ -z "$compiler" ]; then check structures skipped "no compiler for $header"; return; fi
  "$here/bin/gpu-acceptance" structs | tr -d '{}" ' | tr ',:' '\n ' >"$work/structs"
  wrong='' right=0 unknown=''
  while read -r name size; do
    case $(size_is "$header" "$name" "$size") in
      unknown) unknown="$unknown $name" ;;
      right) right=$((right + 1)) ;;
      *) wrong="$wrong $name" ;;
    esac
  done <"$work/structs"
  if [ -n "$wrong" ]; then
    check structures failed "other sizes in $header:$wrong"
  else
    check structures passed "$right sizes as in $header${unknown:+; not in it:$unknown}"
  fi
}
