#!/bin/sh
# The incident, end to end: find it, measure it, fix it, prove it. Works on copies; nothing in examples/ changes.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
cp examples/incident/*.yaml "$work"/
mkdir "$work/detour"
cp examples/incident-detour/*.yaml "$work/detour"/
table="$(pwd)/scripts/demo_table.py"
cd "$work" || exit 2
# The detour is the same job under a policy that denies nothing: a second story, kept out of the first directory.
mv detour "$work-detour"
trap 'rm -rf "$work" "$work-detour"' EXIT INT TERM

step() { printf '\n\033[1m==> %s\033[0m\n    $ %s\n\n' "$1" "$2"; }
fail() { printf 'demo: %s\n' "$1" >&2; exit 1; }

step "1. Before the merge: every pod will be Running, and the job will stall" "stallscope check ."
stallscope check . -o text -o json=before.report
[ $? -eq 1 ] || fail "check should have found the stall (exit 1)"

step "2. Rehearse it for real, in a pocket cluster on this machine: as written, and with the fix" "stallscope rehearse ."
stallscope rehearse . --repeat 1 -o text -o json=denied.report
case $? in
    0|1) measured=yes ;;
    *)   measured=no; echo "demo: no rehearsal on this machine (see above); the rest does not need it" >&2 ;;
esac

if [ "$measured" = yes ]; then
    step "3. The same job where the policy allows everything: it runs, across zones" "stallscope rehearse detour/ --nodes nodes.yaml"
    stallscope rehearse "$work-detour" --nodes nodes.yaml -q -o text -o json=detour.report
fi

step "4. The fix, as a diff, proved by judging the patched files again" "stallscope fix ."
stallscope fix . > fix.diff
cat fix.diff
[ -s fix.diff ] || fail "fix should have printed a patch"

step "5. Apply it and check again" "stallscope fix --write . && stallscope check --min-severity warning ."
stallscope fix --write -q . || fail "fix --write should succeed"
stallscope check --min-severity warning . -o text -o json=after.report || fail "the fixed files should be clean (exit 0)"

printf '\n\033[1m==> %s\033[0m\n\n' "In one table"
python "$table" "$work"
