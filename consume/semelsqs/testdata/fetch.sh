#!/usr/bin/env bash
# Fetches the clients of other languages that the tests of this package use, once, into
# ${XDG_CACHE_HOME:-~/.cache}/semel/sqsclients.
#
#   fetch.sh python    boto3 and the AWS CLI from PyPI; print the directory of their programs
#   fetch.sh node      @aws-sdk/client-sqs from npm; print the directory in which Node finds it
#
# Exit status 3: what is needed is not there, or could not be fetched.
set -euo pipefail
cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/semel/sqsclients

missing() {
	echo "$*" >&2
	exit 3
}

case ${1:-} in
python)
	want=boto3-1.43.11,awscli-1.45.11
	if [ "$(cat "$cache/python/version" 2>/dev/null)" != "$want" ]; then
		command -v python3 >/dev/null 2>&1 || missing "there is no python3"
		rm -rf "$cache/python"
		{ python3 -m venv "$cache/python" && "$cache/python/bin/pip" install -q --disable-pip-version-check boto3==1.43.11 awscli==1.45.11; } >&2 ||
			missing "boto3 and awscli could not be installed from PyPI"
		echo "$want" >"$cache/python/version"
	fi
	echo "$cache/python/bin"
	;;
node)
	want=3.1175.0
	command -v node >/dev/null 2>&1 || missing "there is no node"
	if [ "$(cat "$cache/node/version" 2>/dev/null)" != "$want" ]; then
		command -v npm >/dev/null 2>&1 || missing "there is no npm, which installs @aws-sdk/client-sqs"
		rm -rf "$cache/node" && mkdir -p "$cache/node"
		(cd "$cache/node" && npm install --silent --no-audit --no-fund "@aws-sdk/client-sqs@$want") >&2 || missing "@aws-sdk/client-sqs could not be installed from npm"
		echo "$want" >"$cache/node/version"
	fi
	echo "$cache/node"
	;;
*)
	missing "usage: fetch.sh python|node"
	;;
esac
