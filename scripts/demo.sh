#!/bin/sh
# The incident, end to end: find it, measure it, fix it, prove it. Works on a copy; nothing in examples/ changes.
set -u
here=examples/incident
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cp "$here"/*.yaml "$work"/
cd "$work" || exit 2

step() { printf '\n\033[1m==> %s\033[0m\n    $ %s\n\n' "$1" "$2"; }
fail() { printf 'demo: %s\n' "$1" >&2; exit 1; }

step "1. Before the merge: every pod will be Running, and the job will stall" "stallscope check ."
stallscope check .
[ $? -eq 1 ] || fail "check should have found the stall (exit 1)"

step "2. The fix, as a diff, proved by judging the patched files again" "stallscope fix . | tee fix.diff"
stallscope fix . > fix.diff
cat fix.diff
[ -s fix.diff ] || fail "fix should have printed a patch"

if stallscope rehearse --help >/dev/null 2>&1; then
    step "3. The same job for real, in a pocket cluster on this machine: as written, then fixed" "stallscope rehearse ."
    stallscope rehearse .
    case $? in
        0|1) ;;
        *) echo "demo: the rehearsal could not run here (see the line above); the rest does not need it" >&2 ;;
    esac
fi

step "4. Apply the fix and check again" "stallscope fix --write . && stallscope check --min-severity warning ."
stallscope fix --write . || fail "fix --write should succeed"
stallscope check --min-severity warning . || fail "the fixed files should be clean (exit 0)"
printf '\nThe split is gone, the coordinator schedules, and every peer edge is open.\n'
