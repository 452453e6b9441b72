package proxy_test

import (
	"fmt"
	"strings"
	"testing"
)

// Host names ignore capitals and a dot at the end.
func TestRule_HostInCapitalsOrWithDot_Applies(t *testing.T) {
	for _, match := range []string{"pay.example/", "POST Pay.Example./pay/{id}"} {
		s := play(t, failing, "scope: single\nrules:\n  - match: "+match+"\n    on-doubt: park\n")
		for host, parks := range map[string]bool{
			"pay.example": true, "PAY.example": true, "pay.example:8080": true, "Pay.Example.": true, "pay.example.:80": true,
			"other.example": false, "pay.example.other": false, "[::1]:80": false,
		} {
			before := s.backend.count()
			for range 2 {
				raw(t, s.URL, fmt.Sprintf("POST /pay/7 HTTP/1.1\r\nHost: %s\r\nIdempotency-Key: %s\r\nContent-Length: 0\r\n\r\n", host, strings.ReplaceAll(host, ":", "_")))
			}
			if parked := s.backend.count() == before+1; parked != parks {
				t.Errorf("%s, %s: parked %v", match, host, parked)
			}
		}
	}
}
