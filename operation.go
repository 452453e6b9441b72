package semel

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Operation names what is done once: "charge", "POST /payments/{id}", a
// consumer group. Make it a constant from a small set: it is a part of each
// key, so it must never change, and it labels events and metrics. 1 to 255
// bytes of printable text (UTF-8) without '#', which Semel's own child keys use.
type Operation string

// Check reports what is wrong with the name, which is wrong with every call of
// it then: for those who are given one at their start. Nil: nothing.
func (o Operation) Check() error {
	if err := checkName("operation", string(o)); err != nil {
		return err
	}
	if !utf8.ValidString(string(o)) {
		return errors.New("operation: is not valid UTF-8")
	}
	if strings.Contains(string(o), "#") {
		return fmt.Errorf("operation %q: must not contain '#'", o)
	}
	return nil
}

// Scope is whose a key is and what for: equal keys of two scopes never meet.
// Comparable. The zero Scope is invalid; For and Shared make valid ones.
type Scope struct {
	operation Operation
	tenant    string
	shared    bool
}

// For is the key space of one tenant: a stable name of an account or user, of
// 1 to 255 bytes without control characters, never a credential (a token that is
// refreshed would change the key, and the operation would run again). An empty
// tenant makes an invalid scope, never a shared one.
func (o Operation) For(tenant string) Scope { return Scope{operation: o, tenant: tenant} }

// Shared is one key space for all callers: for jobs, consumer groups and
// services with a single tenant.
func (o Operation) Shared() Scope { return Scope{operation: o, shared: true} }

// Operation is what the scope's keys are for.
func (s Scope) Operation() Operation { return s.operation }

// Tenant is whose keys they are; empty for a shared scope.
func (s Scope) Tenant() string { return s.tenant }

const maxName = 255 // bytes of an operation, a tenant and a key

// Check reports what is wrong with the scope, which is wrong with every call in it
// then. Nil: nothing.
func (s Scope) Check() error {
	if s == (Scope{}) {
		return fmt.Errorf("scope: is missing; make one with Operation.For(tenant) or Operation.Shared()")
	}
	if err := s.operation.Check(); err != nil {
		return err
	}
	if s.shared {
		return nil
	}
	return checkName("tenant", s.tenant)
}

// checkName refuses what would be lost or ambiguous in a store or a log. It
// does not repeat the value, which may be secret.
func checkName(field, v string) error {
	if v == "" {
		return fmt.Errorf("%s: is empty; 1 to %d bytes are needed", field, maxName)
	}
	if len(v) > maxName {
		return fmt.Errorf("%s: has %d bytes; at most %d are allowed", field, len(v), maxName)
	}
	for i := 0; i < len(v); i++ {
		if v[i] < 0x20 || v[i] == 0x7f {
			return fmt.Errorf("%s: has a control character (0x%02x) at byte %d", field, v[i], i)
		}
	}
	return nil
}
