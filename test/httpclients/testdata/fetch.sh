#!/usr/bin/env bash
# Fetches what the real clients and services of this package need, once, into
# ${XDG_CACHE_HOME:-~/.cache}/semel/httpclients: Flask from PyPI, Express and TypeScript
# from npm.
#
#   fetch.sh flask     print a Python that can import Flask
#   fetch.sh express   print a directory in which Node finds Express
#   fetch.sh typescript   print a directory of modules that has the compiler
#
# Exit status 3: what is needed is not there, or could not be fetched.
set -euo pipefail
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/semel/httpclients

missing() {
	echo "$*" >&2
	exit 3
}

case ${1:-} in
flask)
	command -v python3 >/dev/null 2>&1 || missing "there is no python3"
	if ! python3 -c 'import flask' >/dev/null 2>&1; then
		python=$cache/python/bin/python3
		if ! "$python" -c 'import flask' >/dev/null 2>&1; then
			{ python3 -m venv "$cache/python" && "$cache/python/bin/pip" install -q flask==3.1.3; } >&2 || missing "Flask could not be installed from PyPI"
		fi
		echo "$python"
	else
		command -v python3
	fi
	;;
express)
	command -v node >/dev/null 2>&1 || missing "there is no node"
	if [ ! -d "$cache/node/node_modules/express" ]; then
		command -v npm >/dev/null 2>&1 || missing "there is no npm, which installs Express"
		mkdir -p "$cache/node"
		(cd "$cache/node" && npm install --silent --no-audit --no-fund express@4.22.1) >&2 || missing "Express could not be installed from npm"
	fi
	echo "$cache/node"
	;;
typescript)
	command -v npm >/dev/null 2>&1 || missing "there is no npm, which installs TypeScript"
	mkdir -p "$cache/typescript"
	clients=$(dirname "$0")/../../../examples/clients
	if ! cmp -s "$clients/package.json" "$cache/typescript/package.json"; then
		cp "$clients/package.json" "$cache/typescript/package.json"
		(cd "$cache/typescript" && npm install --silent --no-audit --no-fund) >&2 ||
			{ rm -f "$cache/typescript/package.json"; missing "TypeScript could not be installed from npm"; }
	fi
	echo "$cache/typescript/node_modules"
	;;
*)
	missing "usage: fetch.sh flask|express|typescript"
	;;
esac
