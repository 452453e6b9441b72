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

// A gateway can send one Host for all sites, and a service choose the site by X-Forwarded-Host.
func TestTrustForwarded_OtherForwardedHost_IsAnotherRequest(t *testing.T) {
	for doc, other := range map[string]int{
		"trust-forwarded: true\n": 422,
		"trust-forwarded: true\nfingerprint-headers: [host, If-Match]\n":         422,
		"trust-forwarded: true\nfingerprint-headers: [Host, X-Forwarded-Host]\n": 422,
		"trust-forwarded: true\nfingerprint-headers: [If-Match]\n":               201, // the names are of one service
		"": 201, // the service gets the Host
	} {
		s := play(t, created(), "scope: single\n"+doc)
		for _, status := range []int{201, 201} {
			if r := s.pay("order-17", "X-Forwarded-Host", "a.example"); r.status != status {
				t.Fatalf("%q: %+v", doc, r)
			}
		}
		if r := s.pay("order-17", "X-Forwarded-Host", "b.example"); r.status != other || r.replayed() != (other == 201) {
			t.Errorf("%q: the other site got %+v", doc, r)
		}
		if n := s.backend.count(); n != 1 {
			t.Errorf("%q: the service got %d requests", doc, n)
		}
	}
}
