package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/pgstore/internal/cuttest"
	"github.com/semel-go/semel/store/pgstore/internal/handlertx"
	"github.com/semel-go/semel/store/pgstore/pgtest"
)

// spoil is a way to end or spoil a transaction that a handler was lent.
type spoil struct {
	name  string
	ends  bool // the call must fail with handlertx.ErrEnded
	spoil func(ctx context.Context, tx pgx.Tx)
}

func spoils(role string) []spoil {
	text := func(sql string, ends bool) spoil {
		return spoil{sql, ends, func(ctx context.Context, tx pgx.Tx) { _, _ = tx.Exec(ctx, sql) }}
	}
	raw := func(sql string) spoil {
		return spoil{"on the connection: " + sql, true, func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.Conn().PgConn().Exec(ctx, sql).ReadAll()
		}}
	}
	inRows := func(sql string) spoil { return spoil{"in rows: " + sql, true, onConnInRows(sql)} }
	return []spoil{
		text("ROLLBACK", true), text("COMMIT", true), text("end", true), text("ROLLBACK AND CHAIN", true), text("COMMIT AND CHAIN", true),
		text("SELECT 1; COMMIT; BEGIN", true), text("PREPARE TRANSACTION 'x'", true), text("/* a comment */ ABORT", true),
		{"in a batch", true, func(ctx context.Context, tx pgx.Tx) {
			b := &pgx.Batch{}
			b.Queue("SELECT 1")
			b.Queue("COMMIT")
			_ = tx.SendBatch(ctx, b).Close()
		}},
		{"as a query", true, func(ctx context.Context, tx pgx.Tx) { _ = tx.QueryRow(ctx, "COMMIT").Scan() }},
		{"prepared", true, func(ctx context.Context, tx pgx.Tx) {
			_, _ = tx.Prepare(ctx, "fin", "COMMIT")
			_, _ = tx.Exec(ctx, "fin")
		}},
		{"in a savepoint", true, func(ctx context.Context, tx pgx.Tx) {
			if sp, err := tx.Begin(ctx); err == nil {
				_, _ = sp.Exec(ctx, "COMMIT")
			}
		}},
		inRows("ROLLBACK"), inRows("COMMIT; BEGIN"), inRows("ROLLBACK; BEGIN"), inRows("COMMIT AND CHAIN"),
		raw("ROLLBACK"), raw("COMMIT"), raw("ROLLBACK; BEGIN"), raw("COMMIT; BEGIN"), raw("COMMIT; BEGIN READ ONLY"), raw("COMMIT; BEGIN; SELECT 1/0"), raw("COMMIT AND CHAIN"), raw("ROLLBACK AND CHAIN"), raw("PREPARE TRANSACTION 'raw'"),
		{"the connection is closed", false, func(ctx context.Context, tx pgx.Tx) { _ = tx.Conn().Close(ctx) }},
		{"commit, and the connection is closed", true, func(ctx context.Context, tx pgx.Tx) {
			conn := tx.Conn()
			_, _ = conn.Exec(ctx, "COMMIT")
			_ = conn.Close(ctx)
		}},
		text("DISCARD ALL", false), text("DEALLOCATE ALL", false), text("RESET ALL", false), text("SET SESSION search_path TO nowhere", false),
		text("SET LOCAL search_path TO nowhere, pg_catalog", false), text("SET ROLE "+role, false), text("SET TRANSACTION READ ONLY", false),
		text("CREATE TABLE semel_spoil (x int); DROP TABLE semel_spoil", false), text("SELECT 1/0", false), text("SET LOCAL statement_timeout = '1ms'", false),
		text("SAVEPOINT a; SELECT 1; ROLLBACK TO a; RELEASE a", false), text("SAVEPOINT semel_handler", true), text("ROLLBACK TO semel_handler", true),
	}
}

// However a handler ends or spoils the transaction that it was lent, and whatever it
// then returns: no call is acknowledged without its effect, and no effect is there
// without a record.
func TestAtomic_HandlerSpoilsTransaction_EffectAndRecordAgree(t *testing.T) {
	srv := pgtest.Start(t, append([]string{"max_prepared_transactions=10"}, pgtest.Fast...)...)
	p := newShop(t, openAt(t, srv.URL(), nil), nil)
	mustExec(t, p.s.appPool, "CREATE ROLE nobody_special")
	runs := map[string]func(key string, fn func(ctx context.Context, tx pgx.Tx) error) error{
		"Once": func(key string, fn func(ctx context.Context, tx pgx.Tx) error) error {
			return Once(t.Context(), p.a, call(key), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error { return fn(ctx, tx) })
		},
		"a batch": func(key string, fn func(ctx context.Context, tx pgx.Tx) error) error {
			ends := p.a.RunBatch(t.Context(), []semel.Call{call(key)}, func(ctx context.Context, _ []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				return fn(ctx, tx)
			})
			return ends[0].Err
		},
		"a call of a batch": func(key string, fn func(ctx context.Context, tx pgx.Tx) error) error {
			ends := p.a.RunBatch(t.Context(), []semel.Call{call(key)}, func(ctx context.Context, newCalls []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				newCalls[0].Err = fn(ctx, tx)
				return nil
			})
			return ends[0].Err
		},
	}
	trials, wrong := 0, 0
	for form, run := range runs {
		for _, way := range spoils("nobody_special") {
			for end, result := range map[string]error{"nil": nil, "an error": errors.New("down"), "no effect": semel.NoEffect(errors.New("down"))} {
				if form == "a call of a batch" && !way.ends { // PendingCall.Err says that nothing was written
					continue
				}
				name := form + ", " + way.name + ", and " + end
				trials++
				if !t.Run(name, func(t *testing.T) {
					err := run(name, func(ctx context.Context, tx pgx.Tx) error {
						if _, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", name); err != nil {
							t.Error(err)
						}
						way.spoil(ctx, tx)
						return result
					})
					mustExec(t, p.s.appPool, "SELECT 1") // the pool is usable
					p.wantAgreement(t, name, err)
					if way.ends && result == nil && !errors.Is(err, handlertx.ErrEnded) {
						t.Errorf("the error does not name the rule: %v", err)
					}
					if result != nil && err == nil {
						t.Error("the handler failed, and the call did not")
					}
					err = run(name, func(ctx context.Context, tx pgx.Tx) error {
						_, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ($1)", name)
						return err
					})
					p.wantAgreement(t, name, err)
				}) {
					wrong++
				}
			}
		}
	}
	writeEvidence(t, "a handler ends or spoils its transaction: effect, record and answer agree", false, int64(trials), int64(wrong), fmt.Sprintf("%d ways, in a call, in a batch and in a call of a batch, which returns nil, an error or NoEffect", len(spoils(""))))
	mustExec(t, p.s.appPool, "ROLLBACK PREPARED 'raw'")
}

// wantAgreement compares what a caller was told with the effect and the record.
func (p *shop) wantAgreement(t *testing.T, key string, err error) {
	t.Helper()
	effects := ask[int](t, p.s.ownPool, "SELECT count(*) FROM "+p.table+" WHERE key = $1", key)
	r, recordErr := p.record(t, key)
	switch {
	case effects > 1:
		t.Errorf("it took effect %d times", effects)
	case err == nil && (effects != 1 || r.State != store.Completed):
		t.Errorf("the call is done: %d effects, the record is %v, %v", effects, r.State, recordErr)
	case effects == 1 && r.State != store.Completed && r.State != store.Unknown:
		t.Errorf("there is an effect, and the record is %v, %v; the call returned %v", r.State, recordErr, err)
	case effects == 0 && r.State == store.Completed:
		t.Errorf("there is no effect, and the record is completed; the call returned %v", err)
	}
}

// A goroutine of the handler that goes on after its return cannot write.
func TestAtomic_GoroutineOutlivesHandler_CannotWrite(t *testing.T) {
	p := newShop(t, openNew(t, nil), nil)
	returned, wrote := make(chan struct{}), make(chan error)
	for name, run := range map[string]func(fn func(ctx context.Context, tx pgx.Tx)) error{
		"once": func(fn func(ctx context.Context, tx pgx.Tx)) error {
			return Once(t.Context(), p.a, call("once"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error { fn(ctx, tx); return nil })
		},
		"in": func(fn func(ctx context.Context, tx pgx.Tx)) error {
			tx := beginTx(t, p.s, txDefaults)
			_, err := p.a.In(tx).Run(t.Context(), call("in"), func(ctx context.Context, _ *semel.Execution) (store.Outcome, error) {
				inner, _ := TxFrom(ctx)
				fn(ctx, inner)
				return store.Outcome{}, nil
			})
			return err
		},
	} {
		if err := run(func(_ context.Context, tx pgx.Tx) {
			go func() {
				<-returned
				_, err := tx.Exec(context.Background(), "INSERT INTO "+p.table+" VALUES ('late')")
				wrote <- err
			}()
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		returned <- struct{}{}
		if err := <-wrote; !errors.Is(err, pgx.ErrTxClosed) {
			t.Errorf("%s: a statement after the return: %v", name, err)
		}
	}
	p.want(t)
}

// A handler that swallows the error of a statement has failed, and so has a transaction
// that COMMIT refuses: it is an attempt, and the caller gets the cause.
func TestAtomic_FailureBehindHandler_CountsAttempt(t *testing.T) {
	p := newShop(t, openNew(t, nil), &semel.Options{MaxAttempts: 3})
	parent := p.s.quoted() + ".parent"
	mustExec(t, p.s.appPool, "CREATE TABLE "+parent+" (id int PRIMARY KEY)")
	mustExec(t, p.s.appPool, "ALTER TABLE "+p.table+" ADD parent int REFERENCES "+parent+" DEFERRABLE INITIALLY DEFERRED")
	raise := func(code string) string {
		fn := p.s.quoted() + ".raise" + code + "()"
		mustExec(t, p.s.appPool, "CREATE FUNCTION "+fn+" RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = '"+code+"'; END $$")
		mustExec(t, p.s.appPool, "CREATE CONSTRAINT TRIGGER raise"+code+" AFTER INSERT ON "+p.table+" DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.key = 'raise "+code+"') EXECUTE FUNCTION "+fn)
		return "INSERT INTO " + p.table + " VALUES ('raise " + code + "')"
	}
	bad := map[string]string{"deferred foreign key": "INSERT INTO " + p.table + " VALUES ('fk', 7)", "swallowed error": "SELECT 1/0"}
	for _, code := range []string{"53400", "53100", "55P03", "57P01", "58030", "08006", "42501", "XX000", "40001", "25006", "P0001"} {
		bad["code "+code] = raise(code)
	}
	for name, sql := range bad {
		for form, run := range map[string]func(c semel.Call) error{
			"Once": func(c semel.Call) error {
				return Once(t.Context(), p.a, c, func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
					_, _ = tx.Exec(ctx, sql)
					return nil
				})
			},
			"batch": func(c semel.Call) error {
				good := call("good " + c.Key)
				ends := p.a.RunBatch(t.Context(), []semel.Call{c, good}, func(ctx context.Context, newCalls []*PendingCall) error {
					tx, _ := TxFrom(ctx)
					for _, n := range newCalls {
						if n.Index == 0 {
							_, _ = tx.Exec(ctx, sql)
						}
					}
					return nil
				})
				if ends[1].Err != nil {
					t.Errorf("the call beside it: %v", ends[1].Err)
				}
				return ends[0].Err
			},
		} {
			c := call(name + ", " + form)
			for attempt := 1; attempt <= 3; attempt++ {
				err := run(c)
				if err == nil || errors.Is(err, semel.ErrInDoubt) {
					t.Errorf("%s: %v", c.Key, err)
				}
				if !strings.Contains(name, "40001") && errors.Is(err, semel.ErrUnavailable) { // a conflict may pass
					t.Errorf("%s: the cause is the transaction, and not the store: %v", c.Key, err)
				}
				if r, err := p.record(t, c.Key); err != nil || r.State != store.Released || r.Attempt != attempt {
					t.Errorf("%s: the record is %v, attempt %d, %v; want attempt %d", c.Key, r.State, r.Attempt, err, attempt)
				}
			}
			if f, ok := errors.AsType[*semel.Failure](run(c)); !ok || f.Code != semel.CodeAttemptsExhausted {
				t.Errorf("%s: after the last attempt: %v", c.Key, run(c))
			}
		}
	}
	p.want(t)
}

// The connection breaks in a handler that uses it, and the server cannot be asked whether
// the handler has committed. The call is in doubt, and its key is not parked: made again,
// it runs.
func TestAtomic_ConnectionBreaksAndServerIsAway_KeyNotParked(t *testing.T) {
	t.Parallel()
	handler := func(p *shop, breaks bool) func(ctx context.Context, tx pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_ = tx.Conn().TypeMap()
			_, err := tx.Exec(ctx, "INSERT INTO "+p.table+" VALUES ('k')")
			if breaks {
				_, err = tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			}
			return err
		}
	}
	for form, run := range map[string]func(p *shop, breaks bool) error{
		"Once": func(p *shop, breaks bool) error {
			return Once(t.Context(), p.a, call("k"), func(ctx context.Context, _ *semel.Execution, tx pgx.Tx) error {
				return handler(p, breaks)(ctx, tx)
			})
		},
		"batch": func(p *shop, breaks bool) error {
			return p.a.RunBatch(t.Context(), poll("k"), func(ctx context.Context, _ []*PendingCall) error {
				tx, _ := TxFrom(ctx)
				return handler(p, breaks)(ctx, tx)
			})[0].Err
		},
	} {
		t.Run(form, func(t *testing.T) {
			first := openNew(t, nil)
			cut, through := cuttest.New(t, pgtest.URL(t), false)
			cut.Freeze = true
			p := newShop(t, openAt(t, through, &Options{Schema: first.options.Schema}), &semel.Options{StoreTimeout: 2 * time.Second})
			cut.At("pg_xact_status")
			if err := run(p, true); !errors.Is(err, semel.ErrUnavailable) || !errors.Is(err, semel.ErrInDoubt) {
				t.Errorf("the call: %v; want ErrUnavailable, in doubt", err)
			}
			cut.At("no such text")
			if err := run(p, false); err != nil {
				t.Errorf("the call again: %v", err)
			}
			if p.want(t, "k"); cut.Cuts.Load() == 0 {
				t.Error("the server was not asked: this test shows nothing")
			}
		})
	}
}
