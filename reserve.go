package semel

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/protocol"
	"github.com/semel-go/semel/store"
)

// Ticket is a reservation: the call is accepted now, and a worker that redeems the
// token runs it later.
type Ticket struct {
	// Token is URL-safe, and the same for each duplicate while the reservation
	// holds. If Result is nil, send it to the worker, for duplicates too. A token
	// that arrives twice runs the call once; if no token arrives, the call never
	// runs. A holder of the token can run the call, so protect it like the key.
	Token string
	// Fresh is true if this call made the reservation.
	Fresh bool
	// Result is the result of the work, if the work is done already.
	Result *Result
}

// Reserve accepts a call without running it. A duplicate gets the same ticket.
// After the work is done, the ticket has its result, or the error is its *Failure;
// with ErrNotKept the ticket has what is left of the result. Until the
// reservation ends (Options.Reservation), a call with this key that does not come
// from Redeem fails with ErrInProgress. Reserve fails with ErrInProgress while a call that was not
// reserved runs, if that is the first attempt; during a later one it gives out a
// ticket, because the record stays whatever becomes of the attempt.
func (g *Guard) Reserve(ctx context.Context, call Call) (Ticket, error) {
	if err := g.check(&call); err != nil {
		return Ticket{}, err
	}
	if call.isRedeemed() {
		return Ticket{}, invalid(call.Operation, errors.New("call: is redeemed already; only a new call can be reserved"))
	}
	if call.step != nil {
		return Ticket{}, invalid(call.Operation, errStepAlone)
	}
	c := g.newPendingCall(call)
	claim := func() (store.Found, error) {
		p := c.firstClaim()
		p.State, p.Attempt, p.Lease = store.Started, 0, g.options.Reservation
		return g.ask(ctx, func(ctx context.Context) (store.Found, error) { return g.store.Claim(ctx, p) })
	}
	f, err := claim()
	for range maxRounds {
		if errors.Is(err, store.ErrNotFound) {
			f, err = claim() // the record was swept after the last look
		}
		if err != nil {
			return Ticket{}, c.unavailable(ctx, err)
		}
		if f.Won {
			return Ticket{Token: token(&f.Record), Fresh: true}, nil
		}
		d := c.decide(&f.Record, f.Now)
		// A run that began the life of the key may end it, because it had no effect. A
		// token of that life would then be worth nothing.
		if r := &f.Record; r.State == store.Processing && beganLife(r) {
			switch d.Action {
			case store.InProgress:
				c.running = runningFor(r, f.Now)
				return Ticket{}, c.refuse(ctx, ErrInProgress, d.Until.Sub(f.Now), nil)
			case store.TakeOver:
				d.Action = store.Execute
			case store.DoPark:
				f, err = c.park(ctx, r, protocol.LastAttemptText(r))
				continue
			}
		}
		switch d.Action {
		case store.Execute: // the record has expired or was released: reserve it again
			p := c.nextClaim(&f.Record, d, store.Started)
			p.Attempt, p.Lease = p.Attempt-1, g.options.Reservation
			f, err = c.swap(ctx, f.Record.Seen(), p)
			continue
		case store.InProgress, store.TakeOver, store.DoPark, store.Parked: // the bearer of the token finds out
			return Ticket{Token: token(&f.Record)}, nil
		case store.Exhausted:
			f, err = c.exhaust(ctx, &f.Record, d.Policy)
			continue
		}
		res, err := c.answer(ctx, &f.Record, d)
		if err != nil && !errors.Is(err, ErrNotKept) {
			return Ticket{}, err
		}
		return Ticket{Result: &res}, err
	}
	return Ticket{}, c.refuse(ctx, ErrInProgress, 0, errKeepsChanging)
}

// tokenVersion is the first byte of each token.
const tokenVersion = 1

// token names the reservation and not the claim: Created stays the same through
// all attempts, and differs if the key is used again after it has expired.
func token(r *store.Record) string {
	b := []byte{tokenVersion}
	b = binary.AppendUvarint(b, uint64(store.Micros(r.Created)))
	for _, field := range []string{r.Key.Operation, r.Key.Tenant, r.Key.Value} {
		b = binary.AppendUvarint(b, uint64(len(field)))
		b = append(b, field...)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Redeem makes the reserved call of a token, for Do or any other Runner. A token
// that is redeemed twice runs once. The call runs under the stricter of this
// Guard's policy and the reservation's. Its payload is not compared again. If the
// reservation and its outcome have expired, the call fails with ErrExpired when
// it is run. With Options.HashKeys the call has the hashes of its tenant and key.
func (g *Guard) Redeem(token string) (Call, error) {
	c, err := parseToken(token)
	if err != nil {
		return Call{}, invalid("", fmt.Errorf("token: %w", err))
	}
	return c, nil
}

// passUnchanged tells a caller what to do about a token that cannot be read.
const passUnchanged = "; pass the token exactly as Reserve returned it"

func parseToken(token string) (Call, error) {
	const longest = 4096
	if len(token) > longest {
		return Call{}, fmt.Errorf("has %d bytes; at most %d are allowed", len(token), longest)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) == 0 || b[0] != tokenVersion {
		return Call{}, errors.New("is not one that Reserve made" + passUnchanged)
	}
	r := bytes.NewReader(b[1:])
	created, err := binary.ReadUvarint(r)
	if err != nil || created == 0 || created > 1<<62 {
		return Call{}, errors.New("its time cannot be read" + passUnchanged)
	}
	var fields [3]string
	for i := range fields {
		n, err := binary.ReadUvarint(r)
		if err != nil || n > uint64(r.Len()) {
			return Call{}, errors.New("is cut short" + passUnchanged)
		}
		field := make([]byte, n)
		_, _ = r.Read(field) // n bytes are left
		fields[i] = string(field)
	}
	if r.Len() > 0 {
		return Call{}, errors.New("has bytes after its end" + passUnchanged)
	}
	c := Call{
		Operation: fields[0], Tenant: fields[1], Key: fields[2],
		Payload: NoPayload(), reserved: store.Time(int64(created)), stored: true,
	}
	if c.Operation == "" || c.Key == "" {
		return Call{}, errors.New("has no operation or no key" + passUnchanged)
	}
	if c.Tenant == "" {
		c.Tenant = Shared
	}
	return c, nil
}
