package table

import (
	"github.com/semel-go/semel/store"
)

// receive writes a record of another store, unless the row that is there is as late. The
// fence is one of the other store, so it is not compared with the swept ones. The read
// first saves a repeated copy the lock of the row; the conflict decides.
const receive = `INSERT INTO {s}.semel_record AS r ({insert}, former_owners)
		SELECT $1::uuid, $2::uuid, $3::smallint, $4::smallint, $5::bigint, $6::bigint, $7::bigint, $8::bytea, $9::bytea, $10::bytea, $11::bytea,
			$12::bytea, $13::bytea, $14::bytea, $15::bytea, $16::bigint, $17::boolean, $18::bytea, $19::bytea, $20::bytea,
			$21::bigint, $22::bigint, 1, $23::bigint, $24::bytea
		WHERE NOT EXISTS (SELECT FROM {s}.semel_record o WHERE o.id = $1::uuid AND (o.fence > $23::bigint OR o.fence = $23::bigint AND o.updated >= $22::bigint))
		ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, state = excluded.state, policy = excluded.policy, attempt = excluded.attempt,
			until = excluded.until, expires = excluded.expires, holder = excluded.holder, fingerprint_alg = excluded.fingerprint_alg,
			fingerprint_key = excluded.fingerprint_key, fingerprint = excluded.fingerprint, last_error = excluded.last_error,
			code = excluded.code, gone = excluded.gone, codec = excluded.codec, header = excluded.header, body = excluded.body,
			created = excluded.created, updated = excluded.updated, format = excluded.format, fence = excluded.fence, former_owners = excluded.former_owners
		WHERE r.operation = excluded.operation AND r.tenant = excluded.tenant AND r.key = excluded.key
			AND (r.fence < excluded.fence OR r.fence = excluded.fence AND r.updated < excluded.updated)
		RETURNING {now}, r.id`

const receiveStep = `INSERT INTO {s}.semel_step (record, created, name, recorded, data)
	VALUES ($1::uuid, $2::bigint, $3::bytea, $4::bigint, $5::bytea)`

// ReceiveArgs are the parameters of the statements Receive and ReceiveDoubt.
func ReceiveArgs(r *store.Record) ([]any, error) {
	args, err := ProposalArgs(ID(r.Key), &store.Proposal{
		Key: r.Key, State: r.State, Policy: r.Policy, Owner: r.Owner, Holder: r.Holder, Fingerprint: r.Fingerprint, Attempt: r.Attempt,
		Outcome: r.Outcome, Error: r.LastError,
	})
	if err != nil {
		return nil, err
	}
	args[5], args[6] = store.Micros(r.Until), store.Micros(r.Expires)
	return append(args, store.Micros(r.Created), store.Micros(r.Updated), Fence(r.Fence), store.EncodeFormerOwners(r.FormerOwners)), nil
}
