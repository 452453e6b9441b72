package storeurl

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/semel-go/semel/cmd/semel/internal/input"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/store/dynamostore"
)

// dynamoStore is a parsed URL of DynamoDB.
type dynamoStore struct {
	table, region, endpoint string
	opt                     dynamostore.Options
}

const dynamoOptions = "region=NAME, endpoint=URL, prefix=TEXT, partition-key=NAME, sort-key=NAME, ttl=NAME, index=NAME, index-shards=N, max-skew=TIME, sweep-expired"

// parseDynamo reads dynamodb://TABLE?region=…&endpoint=….
func parseDynamo(text, where string) (*dynamoStore, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, &input.Error{Field: where, Value: "dynamodb://…", Want: "is not a URL; write dynamodb://TABLE?region=REGION"}
	}
	d := &dynamoStore{table: u.Host}
	if d.table == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return nil, &input.Error{Field: where, Value: u.Redacted(), Want: "must be dynamodb://TABLE?region=REGION; credentials come from AWS's usual places, such as AWS_PROFILE or the machine's role"}
	}
	for name, values := range u.Query() {
		if err := d.set(name, values[len(values)-1]); err != nil {
			return nil, &input.Error{Field: where, Value: name + "=" + values[len(values)-1], Want: err.Error()}
		}
	}
	if _, err := dynamostore.New(dynamodb.New(dynamodb.Options{}), d.table, &d.opt); err != nil {
		return nil, &input.Error{Field: where, Value: text, Want: "is refused: " + err.Error()}
	}
	return d, nil
}

func (d *dynamoStore) set(name, value string) (err error) {
	switch name {
	case "region":
		d.region = value
	case "endpoint":
		d.endpoint = value
	case "prefix":
		d.opt.Prefix = value
	case "partition-key":
		d.opt.PartitionKey = value
	case "sort-key":
		d.opt.SortKey = value
	case "ttl":
		d.opt.TTL = value
	case "index":
		d.opt.Index = value
	case "index-shards":
		if d.opt.IndexShards, err = strconv.Atoi(value); err != nil {
			return wanted("must be a number")
		}
	case "max-skew":
		if d.opt.MaxSkew, err = time.ParseDuration(value); err != nil {
			return wanted("must be a time, such as 500ms or 2s")
		}
	case "sweep-expired":
		if d.opt.SweepExpired, err = strconv.ParseBool(value); value != "" && err != nil {
			return wanted("must be true or false")
		}
		d.opt.SweepExpired = d.opt.SweepExpired || value == ""
	default:
		return wanted("is no option of the store; there are " + dynamoOptions)
	}
	return nil
}

// dynamo is a store that needs no closing.
type dynamo struct{ *dynamostore.Store }

func (dynamo) Close() error { return nil }

// open opens the store, and makes its table if it is missing and that is wanted.
func (d *dynamoStore) open(ctx context.Context, create bool) (Handle, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Logger = logging.Nop{} // the SDK's warnings are also in its errors
		if d.region != "" {
			o.Region = d.region
		}
		if d.endpoint != "" {
			o.BaseEndpoint = &d.endpoint
		}
	})
	s, err := dynamostore.New(client, d.table, &d.opt)
	if err != nil {
		return nil, err
	}
	err = store.Ping(ctx, s)
	if create && errors.Is(err, dynamostore.ErrNoTable) {
		err = s.Migrate(ctx)
	}
	if err != nil {
		return nil, err
	}
	return dynamo{s}, nil
}

// MigrateTable makes the table of a store in DynamoDB, or adds to it what is missing.
// The result is false for another kind of store.
func (u URL) MigrateTable(ctx context.Context) (bool, error) {
	if u.kind != inDynamo {
		return false, nil
	}
	h, err := u.dynamo.open(ctx, true)
	if err != nil {
		return true, err
	}
	return true, h.(dynamo).Migrate(ctx)
}

// InDynamo reports whether the records are in DynamoDB.
func (u URL) InDynamo() bool { return u.kind == inDynamo }
