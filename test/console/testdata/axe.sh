#!/usr/bin/env bash
# Prints the path of axe-core, which looks for faults that shut people out of a page. It
# is fetched once from npm into ${XDG_CACHE_HOME:-~/.cache}/semel/axe. Exit status 3: it
# could not be fetched.
set -euo pipefail
dir=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/semel/axe
file=$dir/node_modules/axe-core/axe.min.js
if [ ! -f "$file" ]; then
	command -v npm >/dev/null 2>&1 || { echo "there is no npm, which fetches axe-core" >&2 && exit 3; }
	mkdir -p "$dir"
	(cd "$dir" && npm install --silent --no-audit --no-fund axe-core@4.11.0) >&2 || { echo "axe-core could not be fetched from npm" >&2 && exit 3; }
fi
echo "$file"
