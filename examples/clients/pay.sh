#!/usr/bin/env bash
# Pays once, however often the request has to be sent: pay.sh URL KEY [SECONDS]
set -euo pipefail
body=$(mktemp)
trap 'rm -f "$body"' EXIT

pause=1
for _ in {1..12}; do
	# The same key and bytes each time. The status is 000 if there is no answer.
	IFS='|' read -r status replayed outcome after < <(
		curl --silent --max-time "${3:-10}" --header "Idempotency-Key: $2" --json '{"cents": 4200}' --output "$body" \
			--write-out '%{http_code}|%header{idempotent-replayed}|%header{semel-outcome}|%header{retry-after}\n' "$1"
	)
	case $status in
	000 | 408 | 425 | 429 | 502 | 503 | 504) again=yes ;; # later there may be another answer
	4??) again=$after ;;                                   # if it says after what time
	*) again= ;;
	esac
	if [ -z "$again" ] || [ -n "$replayed$outcome" ]; then break; fi
	[[ $after =~ ^[0-9]+$ ]] || after= # it can be a date
	sleep "${after:-$pause}"
	pause=$((pause * 2))
done
echo "$status ${replayed:-false} $(cat "$body")"
