#!/usr/bin/env bash
# Prints a Python that can import Pulsar's client, which it installs from PyPI once, into
# ${XDG_CACHE_HOME:-~/.cache}/semel/pulsar-python.
set -euo pipefail
dir=${XDG_CACHE_HOME:-$HOME/.cache}/semel/pulsar-python
python=$dir/bin/python3
if ! "$python" -c 'import pulsar' >/dev/null 2>&1; then
	python3 -m venv "$dir" >&2
	"$dir/bin/pip" install --quiet --disable-pip-version-check pulsar-client==3.13.0 >&2
fi
echo "$python"
