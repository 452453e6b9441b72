package coalesce

// list is a queue from which any item can be removed.
type list[Req, Res any] struct{ first, last *Item[Req, Res] }

func (q *list[Req, Res]) push(it *Item[Req, Res]) {
	it.prev, it.next = q.last, nil
	if q.last == nil {
		q.first = it
	} else {
		q.last.next = it
	}
	q.last = it
}

func (q *list[Req, Res]) pop() *Item[Req, Res] {
	it := q.first
	if it != nil {
		q.remove(it)
	}
	return it
}

func (q *list[Req, Res]) remove(it *Item[Req, Res]) {
	if it.prev == nil {
		q.first = it.next
	} else {
		it.prev.next = it.next
	}
	if it.next == nil {
		q.last = it.prev
	} else {
		it.next.prev = it.prev
	}
	it.prev, it.next = nil, nil
}
