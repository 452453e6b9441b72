// Package dynamostore keeps records in a DynamoDB table. Use it for serverless
// programs on AWS, or where one database machine is not enough.
//
//	client := dynamodb.NewFromConfig(cfg)
//	st, err := dynamostore.New(client, "semel", nil)
//	…
//	err = st.Migrate(ctx) // once, or: semel migrate
//
// # Promises
//
// Each change is one conditional write, and each read is strongly consistent:
//
//   - A claim is a PutItem that DynamoDB refuses if there is an item. The refusal
//     brings that item along, so that a replay is one request.
//   - A settlement is an UpdateItem that compares owner, fencing token and state. It
//     never makes an item, and no change deletes one without comparing it.
//   - The client's retries may stay on: a change that is sent again is recognized by
//     its owner token, and is applied once.
//   - A renewal that arrives late does not shorten a lease that was renewed since.
//
// DynamoDB keeps what it has acknowledged in three availability zones. A global
// table is another matter: two regions may both grant a key, unless the table has
// multi-region strong consistency. [Store.Check] (semel doctor) refuses the first
// kind. Restoring a table to an earlier time brings back old records, and the calls
// since then run again.
//
// The tests run on ministack, an emulator, and most of them on a second one, minidyn.
// Only AWS itself can show how DynamoDB behaves when a partition splits or a zone
// fails, how far the index is behind, and when the time to live deletes an item.
//
// # The clock
//
// A condition of DynamoDB has no clock, so leases and expiry go by the clock of each
// process. Options.MaxSkew (2 s) is the most by which two clocks may differ:
//
//   - Another process's lease counts as lapsed MaxSkew after its end. A recorded
//     outcome is kept twice as much longer.
//   - Each reply has the server's time in seconds. If it shows that this process's
//     clock is wrong by more than half of MaxSkew, claims and renewals are ErrClock,
//     until a reply shows that the clock is right. A process sends a GetItem to see such
//     a reply before its first claim, and after its clock was set, which the monotonic
//     clock shows. A difference of up to a second more can stay unseen. If the clock is
//     ahead, records are judged by the server's time.
//   - Settlements go on, because the fencing token decides about them. If the last
//     reply has shown that the clock is wrong, they are dated by the server's time, to
//     a second. If the clock is set wrong while a settlement is on its way, its outcome
//     can expire early, and then the call runs again.
//   - If the clock is set wrong while a claim or a renewal is on its way, it is ErrClock
//     and is stored all the same. The Guard gives the claim back if the clock is right
//     again within SettleTimeout; otherwise the lease ends by the wrong clock.
//   - If the clocks differ by more than MaxSkew and nothing shows it, a lease may be
//     taken over too early: two handlers may run, and the first cannot settle.
//
// # Expiry
//
// The store judges expiry when it reads. DynamoDB's time to live removes an item an
// hour after its record has expired at the earliest; records in flight or in doubt
// have no time to live. The fencing token of a key grows although nothing of the old
// record is left, because tokens are times: the item is removed when the clocks of
// all processes are past the token.
//
// Run semel sweep, or package sweep, to recover the calls of dead processes. It finds
// them, and those in doubt, by the index "semel-due", which holds no other records.
// Options.SweepExpired deletes expired records too, for which it reads the table.
//
// # Limits
//
// An item has at most 400 KB. Outcomes and steps are compressed; an outcome that is
// still larger is ErrTooLarge, and the Guard records a tombstone. With Options.Objects,
// large outcomes are kept outside of the item, for example in S3. The steps of a call
// have 300 KB together, and are refused beyond that.
//
// # Requests and units
//
// For a record of up to 1 KB (write units; the index takes its own):
//
//	                        requests             table    index
//	a new call              PutItem, UpdateItem  2        2
//	a replay                PutItem              1        -
//	a renewal               UpdateItem           1        2
//	a step                  UpdateItem           1        -
//	a look while waiting    GetItem              1 read   -
//	before the first claim  GetItem              1 read   -
//
// A write takes a unit for each KB of the item, a refused one too. A waiting call
// looks at pauses that grow from 20 ms to 1 s.
//
// # Tables
//
// The table's keys are strings: "pk", or a partition and a sort key with
// Options.SortKey. Other data may be in the same table: all partition keys of the
// store begin with Options.Prefix, those of timers with "timer:" and the prefix, and
// Migrate adds the index to a table that exists.
//
// The store needs these IAM actions on the table, and dynamodb:Query on its index
// (table/NAME/index/semel-due):
//
//	dynamodb:PutItem  dynamodb:UpdateItem  dynamodb:GetItem  dynamodb:BatchGetItem
//
// and dynamodb:DeleteItem for sagas, whose timers it removes, dynamodb:Scan to list
// finished records, and both for Options.SweepExpired and for erasures. Migrate needs
// DescribeTable, CreateTable, UpdateTable, DescribeTimeToLive and UpdateTimeToLive; Check
// needs DescribeTable, DescribeTimeToLive and DescribeContinuousBackups.
package dynamostore
