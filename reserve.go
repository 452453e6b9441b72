package semel

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/store"
)

// Ticket is a reservation: the call is accepted now and run later, by whoever
// redeems the token.
type Ticket struct {
	// Token is URL-safe, and the same for each duplicate while the
	// reservation holds. Hand it on each time that Result is nil: twice is
	// harmless, never is not. Who has it can run the call, so it is no more
	// public than the key.
	Token string
	// Fresh: this call made the reservation.
	Fresh bool
	// Result is what the work has left, if it is done already.
	Result *Result
}

// Reserve accepts a call without running it. A duplicate gets the same ticket;
// once the work is done, its result (with ErrNotKept: what is left of it), or
// its *Failure as the error. A plain
// call with the key is told ErrInProgress until Options.Reservation is over.
func (g *Guard) Reserve(ctx context.Context, call Call) (Ticket, error) {
	if err := g.check(&call); err != nil {
		return Ticket{}, err
	}
	if !call.token.IsZero() {
		return Ticket{}, invalid(call.Operation(), errors.New("call: is redeemed already; reserve it as NewCall made it"))
	}
	v := g.newVisit(call)
	claim := func() (store.Found, error) {
		p := v.propose()
		p.State, p.Attempt, p.Lease = store.Started, 0, g.opt.Reservation
		return send(ctx, func() (store.Found, error) { return g.st.Claim(ctx, p) })
	}
	f, err := claim()
	for range maxRounds {
		if errors.Is(err, store.ErrNotFound) {
			f, err = claim() // it was swept since it was seen
		}
		if err != nil {
			return Ticket{}, v.unavailable(ctx, err)
		}
		if f.Won {
			return Ticket{Token: token(&f.Record), Fresh: true}, nil
		}
		d := v.decide(&f.Record, f.Now)
		switch d.Action {
		case store.Execute: // expired, lapsed or released: reserve it again
			p := v.next(&f.Record, d)
			p.State, p.Attempt, p.Lease = store.Started, p.Attempt-1, g.opt.Reservation
			f, err = v.swap(ctx, f.Record.Seen(), p)
			continue
		case store.InProgress, store.TakeOver, store.DoPark, store.Parked: // the bearer finds out
			return Ticket{Token: token(&f.Record)}, nil
		case store.Exhausted:
			f, err = v.exhaust(ctx, &f.Record, d.Policy)
			continue
		}
		res, err := v.answer(ctx, &f.Record, d)
		if err != nil && !errors.Is(err, ErrNotKept) {
			return Ticket{}, err
		}
		return Ticket{Result: &res}, err
	}
	return Ticket{}, v.refuse(ctx, EventBusy, ErrInProgress, 0, errors.New("the record keeps changing"))
}

// tokenVersion begins each token, so that a later layout can be told apart.
const tokenVersion = 1

// token names the reservation, not the claim: Created stays the same through
// attempts and take-overs, and differs once the key has begun anew.
func token(r *store.Record) string {
	b := []byte{tokenVersion}
	b = binary.AppendUvarint(b, uint64(store.Micros(r.Created)))
	for _, field := range []string{r.Key.Operation, r.Key.Tenant, r.Key.Value} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Redeem makes the reserved call of a token, for Do or any door. A token that
// is redeemed twice runs once. The call runs under the stricter of this
// Guard's policy and the reservation's; its payload was compared by Reserve.
// ErrExpired, when it is run: the reservation and its outcome are over.
func (g *Guard) Redeem(token string) (Call, error) {
	c, err := parseToken(token)
	if err != nil {
		return Call{}, invalid("", fmt.Errorf("token: %w", err))
	}
	return c, nil
}

func parseToken(token string) (Call, error) {
	const most = 4096
	if len(token) > most {
		return Call{}, fmt.Errorf("has %d bytes; at most %d are allowed", len(token), most)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) == 0 || b[0] != tokenVersion {
		return Call{}, errors.New("is not one that Reserve made")
	}
	r := bytes.NewReader(b[1:])
	created, err := binary.ReadUvarint(r)
	if err != nil || created == 0 || created > 1<<62 {
		return Call{}, errors.New("is damaged: its time")
	}
	var fields [3]string
	for i := range fields {
		n, err := binary.ReadUvarint(r)
		if err != nil || n > uint64(r.Len()) {
			return Call{}, errors.New("is damaged: cut short")
		}
		field := make([]byte, n)
		_, _ = r.Read(field) // there are n left
		fields[i] = string(field)
	}
	if r.Len() > 0 {
		return Call{}, errors.New("is damaged: too long")
	}
	c := Call{
		key:     store.Key{Operation: fields[0], Tenant: fields[1], Value: fields[2]},
		payload: NoPayload(), token: store.Time(int64(created)),
	}
	if c.key.Operation == "" || c.key.Value == "" {
		return Call{}, errors.New("is damaged: no operation or no key")
	}
	return c, nil
}

// Redeemed reports whether the call came from a token, and so was reserved.
func (c *Call) Redeemed() bool { return !c.token.Equal(time.Time{}) }
