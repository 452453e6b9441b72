package table

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Place is the place of a row: partition, page and item number. Page and number have a
// meaning only together with their partition.
type Place struct {
	Part int // 0: the first one, or a table without partitions
	Page int64
	Item int
}

// TID is the ctid within the partition.
func (p Place) TID() string { return fmt.Sprintf("(%d,%d)", p.Page, p.Item) }

// String is the text that ParsePlace reads.
func (p Place) String() string {
	if p.Part == 0 {
		return p.TID()
	}
	return strconv.Itoa(p.Part) + p.TID()
}

// ParsePlace reads a place, such as 3(17,4).
func ParsePlace(text string) (p Place, err error) {
	if number, tid, ok := strings.Cut(text, "("); ok && number != "" {
		if p.Part, err = strconv.Atoi(number); err != nil {
			return p, err
		}
		_, err = fmt.Sscanf("("+tid, "(%d,%d)", &p.Page, &p.Item)
	} else {
		_, err = fmt.Sscanf(text, "(%d,%d)", &p.Page, &p.Item)
	}
	if err == nil && (p.Part < 0 || p.Page < 0 || p.Page > 1<<32-1 || p.Item < 0 || p.Item > 1<<16-1 || p.String() != text) {
		err = errors.New("not a place in the table")
	}
	return p, err
}

// PagesAfter is the place n pages later.
func (p Place) PagesAfter(n int64) Place { return Place{p.Part, min(p.Page+n, 1<<32-1), 0} }
