#!/bin/bash
# core/SPEC.tsv: every row is whole, its sentence stands once, and the files,
# functions and tests that it names exist. Bad rows, made here, are refused.
set -uo pipefail

# Prints what is wrong, a line each, then "N passed, M failed", of rows.
check() { # table
  awk -F '\t' '
    function wrong(what) {
      print FILENAME ":" FNR ": " what
      bad = 1
    }
    # Lines of a file, once; 0 where there is none.
    function lines(file,  n, line) {
      if (!(file in count)) {
        while ((getline line < file) > 0)
          text[file, ++n] = line
        close(file)
        count[file] = n + 0
      }
      return count[file]
    }
    # Whether a line defines or declares the function.
    function defines(file, name,  i) {
      for (i = 1; i <= lines(file); i++)
        if (text[file, i] ~ "^[A-Za-z].*[ *]" name "\\(")
          return i
      return 0
    }
    # Whether a test is defined and run.
    function runs(file, name,  i, at) {
      at = defines(file, name)
      for (i = 1; at && i <= lines(file); i++)
        if (i != at && text[file, i] ~ "(^|[^a-z0-9_])" name "([^a-z0-9_]|$)")
          return 1
      return 0
    }
    # "file" or "file:function", several with "; " between them.
    function places(field, tests,  n, i, all, part, named) {
      n = split(field, all, "; ")
      for (i = 1; i <= n; i++) {
        named = split(all[i], part, ":")
        if (named > 2 || part[1] !~ "^[a-z0-9_/]+[.](c|h)$")
          wrong("no place: " all[i])
        else if (!lines(part[1]))
          wrong("no file " part[1])
        else if (named == 2 && !(tests ? runs(part[1], part[2]) \
                                       : defines(part[1], part[2])))
          wrong(part[1] " has no " (tests ? "test " : "function ") part[2])
        else if (named == 1 && tests)
          wrong("no test named: " all[i])
      }
    }
    function row(  i) {
      if (NF != 5)
        wrong(NF " fields, not 5")
      for (i = 1; i <= NF; i++)
        if ($i ~ /^ *$/ || $i ~ /^ | $|\r/)
          wrong("field " i " is empty or has blanks around it")
      if (bad)
        return
      if ($1 !~ /^00[023]$/)
        wrong("no page " $1)
      if ($3 in seen)
        wrong("the sentence of line " seen[$3])
      else
        seen[$3] = FNR
      places($4, 0)
      if ($5 !~ /^(by construction|deviation): ./)
        places($5, 1)
    }
    FNR == 1 {
      if ($0 != "page\tsection\tsentence\twhere\ttest")
        wrong("no header")
      failed += bad
      next
    }
    {
      bad = 0
      row()
      if (bad) failed++; else passed++
    }
    END {
      if (passed + failed == 0) failed = 1
      printf "%d passed, %d failed\n", passed, failed
    }' "$1"
}

# ---- bad rows ----

good='000|Facts|One.|core/facts.c:rig_nv_facts|core/make_test.c:test_facts'
header='page|section|sentence|where|test'
broken=0

refuses() { # what check says, lines
  local table=$TEST_TMPDIR/table.tsv out
  printf '%s\n' "${@:2}" | tr '|' '\t' >"$table"
  out=$(check "$table")
  if [[ $out != *"$1"* || ($1 != '1 passed, 0 failed' &&
    $out != *', 1 failed') ]]; then
    printf 'not refused as "%s":\n%s\n' "$1" "$out"
    broken=1
  fi
}

refuses '1 passed, 0 failed' "$header" "$good"
refuses 'no header' "$good"
refuses '4 fields, not 5' "$header" "${good%|*}"
refuses '6 fields, not 5' "$header" "$good|more"
refuses '0 fields, not 5' "$header" "$good" ''
refuses 'field 2 is empty' "$header" "${good/Facts/}"
refuses 'field 3 is empty or has blanks around it' "$header" \
  "${good/One./One. }"
refuses 'no page 001' "$header" "${good/000/001}"
refuses 'the sentence of line 2' "$header" "$good" "$good"
refuses 'no file core/fact.c' "$header" "${good/facts.c/fact.c}"
refuses 'core/facts.c has no function nv_facts' "$header" "${good/rig_nv/nv}"
refuses 'no place: core' "$header" "${good/core\/facts.c:rig_nv_facts/core}"
refuses 'no place: core/facts.c:rig_nv_facts:x' "$header" \
  "${good/rig_nv_facts/rig_nv_facts:x}"
refuses 'core/facts.c has no function x' "$header" \
  "${good/rig_nv_facts/rig_nv_facts; core/facts.c:x}"
refuses 'no file core/m_test.c' "$header" "${good/make_test/m_test}"
refuses 'has no test test_fact' "$header" "${good/test_facts/test_fact}"
refuses 'no test named: core/make_test.c' "$header" "${good%:*}"
refuses 'no place: by construction:' "$header" \
  "${good/core\/make_test.c:test_facts/by construction:}"
refuses 'no place: shown' "$header" \
  "${good/core\/make_test.c:test_facts/shown}"
refuses '1 passed, 0 failed' "$header" \
  "${good/core\/make_test.c:test_facts/by construction: a type}"
refuses '0 passed, 1 failed' "$header"
refuses 'no header' ''

# ---- the table ----

out=$(check core/SPEC.tsv)
printf '%s\n' "$out"
[[ $out == *', 0 failed' && $broken == 0 ]]
