package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/semel-go/semel/store"
)

// tableWait bounds how long Migrate waits for a table or an index to be ready.
const tableWait = 10 * time.Minute

// Migrate implements store.Migrator. It makes the table, billed by request, or adds
// the index to a table that exists, and turns on DynamoDB's time to live. It changes
// nothing else of a table that exists.
func (s *Store) Migrate(ctx context.Context) error {
	return s.explain("migrate", s.migrate(ctx))
}

func (s *Store) migrate(ctx context.Context) error {
	table, err := s.describe(ctx)
	if errors.Is(err, ErrNoTable) {
		err = s.createTable(ctx)
	} else if err == nil && s.findIndex(table) == nil {
		err = s.createIndex(ctx)
	}
	if err != nil {
		return err
	}
	if err := s.awaitActive(ctx); err != nil {
		return err
	}
	if has, err := s.hasTimeToLive(ctx); has || err != nil {
		return err
	}
	on := true
	_, err = s.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &s.table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &s.opt.TTL, Enabled: &on},
	})
	if isValidation(err) { // another process may have just turned it on
		if has, again := s.hasTimeToLive(ctx); has || again != nil {
			return again
		}
	}
	return err
}

// hasTimeToLive reports whether the table has its time to live. Another attribute is an error.
func (s *Store) hasTimeToLive(ctx context.Context) (bool, error) {
	ttl, err := s.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.table})
	if err != nil {
		return false, err
	}
	d := ttl.TimeToLiveDescription
	if d == nil || d.TimeToLiveStatus != types.TimeToLiveStatusEnabled && d.TimeToLiveStatus != types.TimeToLiveStatusEnabling {
		return false, nil
	}
	if d.AttributeName != nil && *d.AttributeName != s.opt.TTL {
		return false, fmt.Errorf("the table's time to live uses the attribute %q and Options.TTL is %q; set Options.TTL to it", *d.AttributeName, s.opt.TTL)
	}
	return true, nil
}

// describe is the table's description, or an error that wraps ErrNoTable.
func (s *Store) describe(ctx context.Context) (*types.TableDescription, error) {
	out, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table})
	if _, ok := errors.AsType[*types.ResourceNotFoundException](err); ok {
		return nil, fmt.Errorf("%w: %w", ErrNoTable, err)
	}
	if err != nil {
		return nil, err
	}
	return out.Table, nil
}

func (s *Store) findIndex(table *types.TableDescription) *types.GlobalSecondaryIndexDescription {
	for i := range table.GlobalSecondaryIndexes {
		if index := &table.GlobalSecondaryIndexes[i]; index.IndexName != nil && *index.IndexName == s.opt.Index {
			return index
		}
	}
	return nil
}

// keySchema is a partition key and, if it has a name, a sort key.
func keySchema(partition, sort string) []types.KeySchemaElement {
	schema := []types.KeySchemaElement{{AttributeName: &partition, KeyType: types.KeyTypeHash}}
	if sort != "" {
		schema = append(schema, types.KeySchemaElement{AttributeName: &sort, KeyType: types.KeyTypeRange})
	}
	return schema
}

// indexAttributes defines the attributes of the index's keys.
func indexAttributes() []types.AttributeDefinition {
	due, dueAt := attrDue, attrDueAt
	return []types.AttributeDefinition{
		{AttributeName: &due, AttributeType: types.ScalarAttributeTypeS}, {AttributeName: &dueAt, AttributeType: types.ScalarAttributeTypeN},
	}
}

func (s *Store) createTable(ctx context.Context) error {
	attributes := append(indexAttributes(), types.AttributeDefinition{AttributeName: &s.opt.PartitionKey, AttributeType: types.ScalarAttributeTypeS})
	if s.opt.SortKey != "" {
		attributes = append(attributes, types.AttributeDefinition{AttributeName: &s.opt.SortKey, AttributeType: types.ScalarAttributeTypeS})
	}
	_, err := s.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &s.table, BillingMode: types.BillingModePayPerRequest,
		KeySchema: keySchema(s.opt.PartitionKey, s.opt.SortKey), AttributeDefinitions: attributes,
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: &s.opt.Index, KeySchema: keySchema(attrDue, attrDueAt), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	return alreadyDone(err)
}

func (s *Store) createIndex(ctx context.Context) error {
	_, err := s.client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: &s.table, AttributeDefinitions: indexAttributes(),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: &s.opt.Index, KeySchema: keySchema(attrDue, attrDueAt), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}}},
	})
	return alreadyDone(err)
}

// alreadyDone drops the error of a change that another process is making.
func alreadyDone(err error) error {
	if _, busy := errors.AsType[*types.ResourceInUseException](err); busy {
		return nil
	}
	return err
}

// awaitActive waits until the table and its index can be used.
func (s *Store) awaitActive(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, tableWait, fmt.Errorf("the table is not ready within %v; run migrate again", tableWait))
	defer cancel()
	for {
		table, err := s.describe(ctx)
		if err != nil && !errors.Is(err, ErrNoTable) {
			return err
		}
		if err == nil && table.TableStatus == types.TableStatusActive {
			index := s.findIndex(table)
			switch {
			case index == nil:
				return fmt.Errorf("%w: the table has no index %q", ErrNoTable, s.opt.Index)
			case index.IndexStatus == types.IndexStatusActive || index.IndexStatus == "":
				return nil
			}
		}
		if !sleep(ctx, 500*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// Check implements store.Checker. It returns an ErrUnsafe for each setting of the
// table with which records may be lost or stay for ever, and for a clock that is
// wrong. It changes nothing.
func (s *Store) Check(ctx context.Context) error {
	table, err := s.describe(ctx)
	if err != nil {
		return s.explain("check", err)
	}
	var errs []error
	unsafe := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrUnsafe}, args...)...))
	}
	if !sameKeys(table.KeySchema, keySchema(s.opt.PartitionKey, s.opt.SortKey)) {
		unsafe("the table's key is not Options.PartitionKey %q and Options.SortKey %q", s.opt.PartitionKey, s.opt.SortKey)
	}
	if index := s.findIndex(table); index == nil {
		unsafe("the table has no index %q, so that calls in doubt are not found; run migrate", s.opt.Index)
	} else if !sameKeys(index.KeySchema, keySchema(attrDue, attrDueAt)) {
		unsafe("the keys of the index %q are not %q and %q; set Options.Index to another name and run migrate", s.opt.Index, attrDue, attrDueAt)
	}
	if len(table.Replicas) > 0 && table.MultiRegionConsistency != types.MultiRegionConsistencyStrong {
		unsafe("the table is a global table: two regions may both grant a key; use one region, or multi-region strong consistency")
	}
	ttl, err := s.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &s.table})
	if err != nil {
		return s.explain("check", err)
	}
	if d := ttl.TimeToLiveDescription; d == nil || d.TimeToLiveStatus != types.TimeToLiveStatusEnabled || d.AttributeName == nil || *d.AttributeName != s.opt.TTL {
		if !s.opt.SweepExpired {
			unsafe("time to live is not on for the attribute %q, so that expired records stay; run migrate", s.opt.TTL)
		}
	}
	backups, err := s.client.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &s.table})
	if err != nil {
		return s.explain("check", err)
	}
	if d := backups.ContinuousBackupsDescription; d == nil || d.PointInTimeRecoveryDescription == nil ||
		d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled {
		unsafe("point-in-time recovery is off, so that a deleted table cannot be restored")
	}
	if err := s.checkClock(ctx, store.Processing); err != nil {
		errs = append(errs, err)
	}
	return s.explain("check", errors.Join(errs...))
}

// sameKeys reports whether two key schemas name the same attributes.
func sameKeys(a, b []types.KeySchemaElement) bool {
	if len(a) != len(b) {
		return false
	}
	names := map[types.KeyType]string{}
	for _, k := range a {
		names[k.KeyType] = *k.AttributeName
	}
	for _, k := range b {
		if names[k.KeyType] != *k.AttributeName {
			return false
		}
	}
	return true
}
