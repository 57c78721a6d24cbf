# The program of scripts/check_layers. First file: the table; the others: sources, as paths from the project's root.
# Written for mawk, Debian's awk: no interval expressions, no word boundaries.

function fail(rule) {
  printf "%s:%d: %s\n", FILENAME, FNR, rule
  violations++
}

function glob_to_regex(glob) {
  gsub(/[.+]/, "[&]", glob)
  gsub(/[*]/, ".*", glob)
  return "^" glob "$"
}

function bad_table(text) {
  printf "%s:%d: %s\n", FILENAME, FNR, text
  broken_table = 1
  exit 2
}

# ---- The table ----

function read_row(    at, head, n, fields) {
  at = index($0, " --")
  head = at ? substr($0, 1, at - 1) : $0
  reason = at ? substr($0, at + 3) : ""
  sub(/^ +/, "", reason)
  n = split(head, fields, /[ ]+/)
  if (fields[1] == "room") {
    if (fields[3] != "pure" && fields[3] != "edge") bad_table("a room is pure or edge")
    kind[fields[2]] = fields[3]
    allowed[fields[2]] = reason
  } else if (fields[1] == "tests") {
    test_allowed[fields[2]] = reason
  } else if (fields[1] == "only") {
    only_header[++onlys] = glob_to_regex(fields[2])
    only_rooms[onlys] = reason
  } else if (fields[1] == "outside") {
    outside[++outsides] = glob_to_regex(fields[2])
  } else if (fields[1] == "header") {
    forbidden_header[fields[2]] = reason
  } else if (fields[1] == "word") {
    words++
    word_where[words] = fields[2]
    word_regex[words] = read_regex(head)
    word_reason[words] = reason
  } else {
    bad_table("no such row: " fields[1])
  }
}

function read_regex(head) {
  sub(/^word +[a-z+]+ +/, "", head)
  sub(/ +$/, "", head)
  return "(^|[^A-Za-z0-9_.>])(" head ")"  # not a member of that name
}

# ---- Files ----

# The room of a path below src/: the longest folder of it that the table names; "" where there is none.
function room_of(path,    folder) {
  folder = path
  while (sub(/\/[^\/]*$/, "", folder)) {
    if (folder in kind) return folder
  }
  return ""
}

function in_list(list, path, owner,    n, i, items) {
  n = split(list, items, /[ ]+/)
  for (i = 1; i <= n; i++) {
    if (items[i] == "") continue
    if (items[i] == owner) return 1
    if (items[i] ~ /[.*]/ && path ~ glob_to_regex(items[i])) return 1
  }
  return 0
}

function is_test_path(path) {
  return path ~ /(_test[.](cpp|h)|_contract[.]h|_fixture[.]h|test_support[.]h)$|\/testing\//
}

function begin_file() {
  in_block = 0
  raw_end = ""
  previous_comment = ""
  is_test = is_test_path(FILENAME)
  is_src = FILENAME ~ /^src\//
  room = is_src ? room_of(substr(FILENAME, 5)) : "emulator"
  top = is_src ? substr(FILENAME, 5) : "emulator/"
  sub(/\/.*/, "", top)
  if (is_src && room == "") fail("this folder has no row in scripts/layers.txt")
}

# The line without comments and without what is inside literals; sets `comment` to the comment's text.
function strip(line,    out, n, i, c, at, prev) {
  comment = ""
  if (!in_block && raw_end == "" && line !~ /["'\/]/) return line
  out = ""
  n = length(line)
  i = 1
  while (i <= n) {
    if (raw_end != "") {
      at = index(substr(line, i), raw_end)
      if (!at) return out
      i += at - 1 + length(raw_end)
      raw_end = ""
      continue
    }
    if (in_block) {
      at = index(substr(line, i), "*/")
      if (!at) { comment = comment substr(line, i); return out }
      comment = comment substr(line, i, at - 1)
      i += at + 1
      in_block = 0
      continue
    }
    c = substr(line, i, 1)
    prev = i > 1 ? substr(line, i - 1, 1) : ""
    if (c == "/" && substr(line, i + 1, 1) == "/") {
      comment = comment substr(line, i + 2)
      return out
    }
    if (c == "/" && substr(line, i + 1, 1) == "*") {
      in_block = 1
      i += 2
    } else if (c == "\"" && prev == "R") {
      at = index(substr(line, i), "(")
      raw_end = ")" substr(line, i + 1, at - 2) "\""
      i += at
    } else if (c == "\"" || (c == "'" && prev !~ /[A-Za-z0-9_]/)) {
      i = end_of_literal(line, i, c) + 1
      out = out c c
    } else {
      out = out c
      i++
    }
  }
  return out
}

function end_of_literal(line, i, quote,    c) {
  for (i++; i <= length(line); i++) {
    c = substr(line, i, 1)
    if (c == "\\") i++
    else if (c == quote) return i
  }
  return i
}

function check_include(line,    quoted, path, i) {
  quoted = line ~ /^[ \t]*#[ \t]*include[ \t]*"/
  path = line
  sub(/^[ \t]*#[ \t]*include[ \t]*["<]/, "", path)
  sub(/[">].*/, "", path)
  for (i = 1; i <= onlys; i++) {
    if (path ~ only_header[i] && !in_rooms(only_rooms[i]))
      fail("\"" path "\" may be included in " only_rooms[i] " only")
  }
  if (room == "") return
  if (!is_test && is_test_path(path)) fail("only tests may include " path)
  if (is_test && in_list(test_allowed[room], path, room_of(path))) return
  if (quoted) check_project_include(path)
  else if (kind[room] == "pure" && !is_test) check_outside_include(path)
}

function in_rooms(list,    n, i, items) {
  n = split(list, items, /[ ]+/)
  for (i = 1; i <= n; i++)
    if (room == items[i] || index(room "/", items[i] "/") == 1) return 1
  return 0
}

function check_project_include(path,    target) {
  if (path ~ /^(gpu_platform|grpc\/reflection|grpc\/health)\/v1\//) return
  target = room_of(path)
  if (!is_src) {
    if (target != "" && !in_list(allowed[room], path, target)) fail(room " may not include " path)
    return
  }
  if (path !~ /\//) { fail("\"" path "\": project headers are included by their path from src/"); return }
  if (target == "") { fail("\"" path "\" is in no room of scripts/layers.txt"); return }
  if (target == room) return
  if (room != "base" && (target == "base" || (room != "model" && target == "model"))) return
  if (in_list(allowed[room], path, target)) return
  fail("room " room " may not include " path " (room " target ")")
}

function check_outside_include(path,    i) {
  if (path in forbidden_header) {
    if (!marked(forbidden_header[path])) fail("pure code may not include <" path ">: " forbidden_header[path])
    return
  }
  if (path !~ /[\/.]/) return
  for (i = 1; i <= outsides; i++) if (path ~ outside[i]) return
  if (in_list(allowed[room], path, "")) return
  fail("pure code may not include <" path ">")
}

function marked(why,    name) {
  if (why !~ /[(]mark: [a-z]+[)]$/) return 0
  name = why
  sub(/.*[(]mark: /, "", name)
  sub(/[)]$/, "", name)
  return (comment " " previous_comment) ~ ("layers allow " name ": [^ ]")
}

function check_words(code,    i) {
  for (i = 1; i <= words; i++) {
    if (word_where[i] ~ /^pure/ && (!is_src || kind[room] != "pure")) continue
    if (word_where[i] == "pure" && is_test) continue
    if (word_where[i] == "test" && !is_test) continue
    if (code ~ word_regex[i] && !marked(word_reason[i])) fail(found(code, word_regex[i]) ": " word_reason[i])
  }
}

function found(code, regex,    text) {
  match(code, regex)
  text = substr(code, RSTART, RLENGTH)
  gsub(/^[^A-Za-z0-9_]+|[^A-Za-z0-9_]+$/, "", text)
  return "'" text "' is forbidden here"
}

function check_namespace(code,    name) {
  if (code !~ /^[ ]*namespace gpu_platform::/) return
  name = code
  sub(/^[ ]*namespace gpu_platform::/, "", name)
  sub(/[^A-Za-z0-9_:].*/, "", name)
  if (name != top && !(is_test && name == top "::testing")) fail("namespace gpu_platform::" name " in room " top)
}

FNR == 1 && NR != 1 { begin_file() }
NR == FNR { if ($0 !~ /^#/ && NF) read_row(); next }
{
  is_include = !in_block && raw_end == "" && $0 ~ /^[ \t]*#[ \t]*include[ \t]*["<]/
  code = strip($0)
  if (is_include) check_include($0)
  else {
    check_words(code)
    check_namespace(code)
  }
  if (comment != "" || code !~ /^[ ]*$/) previous_comment = comment
}
END {
  if (broken_table) exit 2
  if (violations) {
    printf "%d violations of scripts/layers.txt\n", violations
    exit 1
  }
}
