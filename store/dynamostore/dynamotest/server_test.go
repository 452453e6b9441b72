package dynamotest_test

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/semel-go/semel/store/dynamostore/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func TestStart_TwoServers_ShareNothing(t *testing.T) {
	t.Parallel()
	one, two := dynamotest.Start(t), dynamotest.URL(t)
	if one.URL() == two {
		t.Fatalf("both servers are at %s", two)
	}
	for _, url := range []string{one.URL(), two} {
		out, err := dynamotest.Client(url).ListTables(t.Context(), &dynamodb.ListTablesInput{})
		if err != nil || len(out.TableNames) != 0 {
			t.Errorf("%s: tables %v, error %v; want none", url, out, err)
		}
	}
}

func TestBin_Variable_NamesProgram(t *testing.T) {
	t.Setenv("SEMEL_TEST_MINISTACK_BIN", "/somewhere/ministack")
	if bin, err := dynamotest.Bin(); err != nil || bin != "/somewhere/ministack" {
		t.Errorf("Bin is %q, error %v", bin, err)
	}
}
