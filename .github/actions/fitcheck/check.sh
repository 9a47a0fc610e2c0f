#!/usr/bin/env bash
# What the action does: install fitcheck beside the job, check the files, say so where the job reads it.
# Needs python3, and FITCHECK_FILES, _GPU, _ARGS, _FAIL_ON, _BASE, _SOURCE of action.yml.
set -euo pipefail
home=${RUNNER_TEMP:-$(mktemp -d)}/fitcheck
answer=$home/fitcheck.json
if [ ! -x "$home/venv/bin/fitcheck" ]; then
    python3 -m venv "$home/venv"
    "$home/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$FITCHECK_SOURCE"
fi
shopt -s globstar nullglob
files=()
while IFS= read -r line; do
    line=${line%$'\r'}
    line=${line#"${line%%[![:space:]]*}"}
    line=${line%"${line##*[![:space:]]}"}
    [ -n "$line" ] || continue
    # Unquoted, so that a glob is one, but not split at spaces; nullglob leaves nothing where none matches.
    # shellcheck disable=SC2206
    IFS=
    found=($line)
    unset IFS
    if [ ${#found[@]} -eq 0 ]; then
        echo "::error title=fitcheck::No file matches '$line'."
        exit 2
    fi
    files+=("${found[@]}")
done <<<"$FITCHECK_FILES"
read -r -a extra <<<"$FITCHECK_ARGS"
options=(--gpu "$FITCHECK_GPU" ${extra[@]+"${extra[@]}"})
status=0
"$home/venv/bin/fitcheck" check "${files[@]}" "${options[@]}" --json >"$answer" || status=$?
# Only what lies in the base is compared: a file that is new, or a base that is not there, excuses nothing.
before=$home/before
rm -rf "$before" "$before.json"
if [ -n "$FITCHECK_BASE" ]; then
    mkdir -p "$before"
    if git rev-parse --quiet --verify "$FITCHECK_BASE^{commit}" >/dev/null && git archive "$FITCHECK_BASE" | tar -x -C "$before"; then
        older=()
        for file in "${files[@]}"; do
            if [ -f "$before/$file" ]; then older+=("$file"); fi
        done
        if [ ${#older[@]} -gt 0 ]; then
            (cd "$before" && "$home/venv/bin/fitcheck" check "${older[@]}" "${options[@]}" --json >"$before.json" 2>/dev/null) || true
        fi
    else
        echo "::warning title=fitcheck::The base $FITCHECK_BASE is not there, so every file counts as new; check out with fetch-depth 0 to compare with it."
    fi
fi
exec "$home/venv/bin/python" "$FITCHECK_SOURCE/.github/actions/fitcheck/report.py" \
    "$answer" "$FITCHECK_FAIL_ON" "$before.json"
