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

// maxFree bounds the items that a lane keeps for later callers.
const maxFree = 1024

// get returns an empty item. The lane is locked.
func (l *Lane[Req, Res]) get() *Item[Req, Res] {
	if it := l.free.pop(); it != nil {
		l.nfree--
		return it
	}
	return &Item[Req, Res]{done: make(chan struct{}, 1)}
}

// put keeps an item for reuse after its caller has the answer. If the caller left
// while it was in flight, it is not reused, because its flush may write to it.
func (l *Lane[Req, Res]) put(it *Item[Req, Res]) {
	*it = Item[Req, Res]{done: it.done}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nfree < maxFree {
		l.nfree++
		l.free.push(it)
	}
}
