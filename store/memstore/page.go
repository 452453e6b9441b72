package memstore

// A shard keeps its rows in pages, one behind the other: memory without a
// pointer, and found without one, for the garbage collector looks at each piece
// of memory and follows each pointer, again and again, and there may be
// millions of rows.
const (
	firstPage = 2 << 10
	lastPage  = 32 << 10
	// ownPage is the size from which a row has a page to itself.
	ownPage = lastPage / 4
)

// place is where a row is: the number of its page, and the offset in that.
type place uint64

func (p place) page() int   { return int(p >> 32) }
func (p place) offset() int { return int(uint32(p)) }

// page holds rows. Its memory is never used again, for who was given a body
// reads it there; it goes when its last row has gone.
type page struct {
	mem  []byte // up to its capacity
	live int    // bytes of those rows that have not gone
}

type pages struct {
	all  []page
	free []int // the numbers of pages that have gone
	open int   // where the next row goes, if there is any page
}

// add makes room for a row.
func (p *pages) add(size int) (place, []byte) {
	if size >= ownPage {
		n := p.take(size)
		p.all[n].mem, p.all[n].live = p.all[n].mem[:size], size
		return place(n) << 32, p.all[n].mem
	}
	if len(p.all) == 0 || cap(p.all[p.open].mem)-len(p.all[p.open].mem) < size {
		full := p.open
		p.open = p.take(max(size, min(firstPage<<min(len(p.all), 8), lastPage)))
		p.leave(full)
	}
	pg := &p.all[p.open]
	at := len(pg.mem)
	pg.mem, pg.live = pg.mem[:at+size], pg.live+size
	return place(p.open)<<32 | place(at), pg.mem[at : at+size : at+size]
}

// take is the number of a new page.
func (p *pages) take(size int) (n int) {
	pg := page{mem: make([]byte, 0, size)}
	if last := len(p.free) - 1; last >= 0 {
		n, p.free = p.free[last], p.free[:last]
		p.all[n] = pg
		return n
	}
	p.all = append(p.all, pg)
	return len(p.all) - 1
}

// drop says that the row of some size at a place has gone.
func (p *pages) drop(at place, size int) {
	p.all[at.page()].live -= size
	p.leave(at.page())
}

// leave gives a page back, if nothing is in it and nothing fits, or goes, there.
func (p *pages) leave(n int) {
	if pg := &p.all[n]; pg.live == 0 && (n != p.open || len(pg.mem) == cap(pg.mem)) && pg.mem != nil {
		*pg = page{}
		p.free = append(p.free, n)
	}
}

// at is the memory from a place on.
func (p *pages) at(at place) []byte { return p.all[at.page()].mem[at.offset():] }

// isSparse reports whether most of the page at a place has gone, and nothing
// more will come.
func (p *pages) isSparse(at place) bool {
	pg := &p.all[at.page()]
	return at.page() != p.open && 2*pg.live < len(pg.mem)
}

// anySparse reports whether there is such a page.
func (p *pages) anySparse() bool {
	for n := range p.all {
		if p.all[n].mem != nil && p.isSparse(place(n)<<32) {
			return true
		}
	}
	return false
}
