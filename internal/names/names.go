// Package names checks the names that make up a key: operation, tenant, key and
// step.
package names

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Max is the longest operation, tenant, key or step, in bytes.
const Max = 255

// Check refuses a name that is empty, longer than Max, or has a control
// character: a store or a log could lose or confuse it. The error names the
// field but not the value, which may be secret.
func Check(field, value string) error {
	if value == "" {
		return fmt.Errorf("%s: is empty; 1 to %d bytes are needed", field, Max)
	}
	if len(value) > Max {
		return fmt.Errorf("%s: has %d bytes; at most %d are allowed", field, len(value), Max)
	}
	for i := 0; i < len(value); i++ {
		if value[i] < 0x20 || value[i] == 0x7f {
			return fmt.Errorf("%s: has a control character (0x%02x) at byte %d", field, value[i], i)
		}
	}
	return nil
}

// CheckOperation refuses an operation that no call can have. Steps have '#' in
// the name of their operation, so users' operations must not.
func CheckOperation(operation string) error {
	if err := Check("operation", operation); err != nil {
		return err
	}
	if !utf8.ValidString(operation) {
		return errors.New("operation: is not valid UTF-8")
	}
	if strings.Contains(operation, "#") {
		return fmt.Errorf("operation %q: must not contain '#'", operation)
	}
	return nil
}
