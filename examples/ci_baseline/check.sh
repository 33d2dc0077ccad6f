#!/usr/bin/env bash
# Proves a bundle and fails when it is worse than the stored proof.
#
#   check.sh BUNDLE BASELINE OUT
#
# OUT gets proof.json (the next baseline), proof.xml (for the build server) and report.html (for
# people). Without a baseline the bundle itself must be proved.
set -euo pipefail
bundle=$1 baseline=$2 out=$3
mkdir -p "$out"

options=(--output "$out/proof.json" --junit "$out/proof.xml" --html "$out/report.html")
if [ -e "$baseline" ]; then
	options+=(--baseline "$baseline")
fi

status=0
veracity check "$bundle" "${options[@]}" || status=$?
case $status in
0) echo "accepted" ;;
1) echo "refused: look at $out/report.html; if it is meant, store $out/proof.json as $baseline" ;;
3) echo "refused: something could not be compared" ;;
*) echo "no answer: the bundle could not be checked" ;;
esac
exit "$status"
