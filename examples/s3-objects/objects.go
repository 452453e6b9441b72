// Package s3objects keeps large results of a store on DynamoDB in S3, as
// docs/dynamodb.md describes.
package s3objects

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/semel-go/semel/store/dynamostore"
)

var _ interface {
	dynamostore.Objects
	dynamostore.ObjectDeleter
} = s3Objects{}

type s3Objects struct {
	client *s3.Client
	bucket string
}

func (o s3Objects) Put(ctx context.Context, name string, body []byte) error {
	_, err := o.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &o.bucket, Key: aws.String("semel/" + name), Body: bytes.NewReader(body)})
	if err != nil {
		slog.ErrorContext(ctx, "a large result is not kept", "object", name, "error", err)
	}
	return err
}

func (o s3Objects) Get(ctx context.Context, name string) ([]byte, error) {
	out, err := o.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &o.bucket, Key: aws.String("semel/" + name)})
	if _, missing := errors.AsType[*types.NoSuchKey](err); missing {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(out.Body)
	return body, errors.Join(err, out.Body.Close())
}

// Delete implements dynamostore.ObjectDeleter, for a bucket that keeps no versions.
func (o s3Objects) Delete(ctx context.Context, name string) error {
	_, err := o.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &o.bucket, Key: aws.String("semel/" + name)})
	return err
}
