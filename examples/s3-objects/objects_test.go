package s3objects

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store/dynamostore"
	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestDo_LargeResult_IsReplayedFromS3(t *testing.T) {
	url := dynamotest.URL(t)
	client := dynamotest.Client(url)
	bucket := s3Objects{bucket: "results", client: s3.New(s3.Options{
		Region: "us-east-1", BaseEndpoint: &url, UsePathStyle: true, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})}
	if _, err := bucket.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket.bucket}); err != nil {
		t.Fatal(err)
	}
	st, err := dynamostore.New(client, "semel", &dynamostore.Options{Objects: bucket})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	guard, err := semel.New(st, nil)
	if err != nil {
		t.Fatal(err)
	}
	report := make([]byte, 600_000)
	_, _ = rand.Read(report) // does not compress; it cannot fail
	ran := 0
	call := func() ([]byte, error) {
		return semel.Do(t.Context(), guard, semel.Call{Operation: "report", Tenant: "ann", Key: "2026-11", Payload: semel.NoPayload()},
			func(context.Context, *semel.Execution) ([]byte, error) {
				ran++
				return report, nil
			})
	}
	for range 2 {
		if got, err := call(); err != nil || !bytes.Equal(got, report) {
			t.Errorf("%d bytes, error %v; want %d", len(got), err, len(report))
		}
	}
	objects, err := bucket.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket.bucket, Prefix: aws.String("semel/")})
	if err != nil || len(objects.Contents) != 1 {
		t.Fatalf("the bucket has %d objects, error %v; want one", len(objects.Contents), err)
	}
	for range 2 { // it is harmless to repeat
		if err := bucket.Delete(t.Context(), strings.TrimPrefix(*objects.Contents[0].Key, "semel/")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := call(); !errors.Is(err, semel.ErrNotKept) || ran != 1 {
		t.Errorf("without the object: error %v after %d runs, want ErrNotKept after one", err, ran)
	}
}
