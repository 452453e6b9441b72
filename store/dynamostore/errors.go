package dynamostore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// Errors that a caller can handle. They wrap the client's error, if there is one.
var (
	// ErrClock: this process's clock is wrong, so that its leases protect
	// nothing. No new call runs.
	ErrClock = errors.New("the clock of this process is wrong")
	// ErrThrottled: the table, or one of its partitions, is beyond its capacity.
	ErrThrottled = fmt.Errorf("throttled: %w", store.ErrBusy)
	// ErrConflict: another change of the same item came first, or is under way in a
	// transaction. Nothing was changed.
	ErrConflict = errors.New("another change of the item came first")
	// ErrNoTable: the table or its index does not exist.
	ErrNoTable = errors.New("no such table or index; create it with Store.Migrate or semel migrate")
	// ErrDenied: AWS refuses the credentials, or an action; the package's
	// documentation has the policy that the store needs.
	ErrDenied = errors.New("access denied")
	// ErrUnsafe: with a setting of the table the store cannot keep its promises.
	ErrUnsafe = errors.New("unsafe setting")
)

// errorClass says what an error code of DynamoDB means to a caller: err is the error of this
// package or of package store (nil: the code has none), extent says which calls it concerns.
type errorClass struct {
	err    error
	extent store.Extent
}

// codes has every error code that the store's requests can get and that is not
// simply an outage. Any other error (a lost connection, a server error, a code
// that is unknown) is an outage, and the change may have been applied.
var codes = map[string]errorClass{
	"ProvisionedThroughputExceededException": {ErrThrottled, store.ExtentPart},
	"ThrottlingException":                    {ErrThrottled, store.ExtentPart},
	"RequestLimitExceeded":                   {ErrThrottled, store.ExtentStore},
	"TransactionConflictException":           {ErrConflict, store.ExtentCall},
	"TransactionInProgressException":         {ErrConflict, store.ExtentCall},
	"ReplicatedWriteConflictException":       {ErrConflict, store.ExtentCall},
	"IdempotentParameterMismatchException":   {nil, store.ExtentCall},
	"ItemCollectionSizeLimitExceededException": {
		store.ErrTooLarge, store.ExtentCall,
	},
	"ResourceNotFoundException":       {ErrNoTable, store.ExtentStore},
	"TableNotFoundException":          {ErrNoTable, store.ExtentStore},
	"AccessDeniedException":           {ErrDenied, store.ExtentStore},
	"UnrecognizedClientException":     {ErrDenied, store.ExtentStore},
	"InvalidSignatureException":       {ErrDenied, store.ExtentStore},
	"IncompleteSignatureException":    {ErrDenied, store.ExtentStore},
	"MissingAuthenticationToken":      {ErrDenied, store.ExtentStore},
	"ExpiredTokenException":           {ErrDenied, store.ExtentStore},
	"KMSAccessDeniedException":        {ErrDenied, store.ExtentStore},
	"ValidationException":             {nil, store.ExtentStore}, // see classify for the one about the size
	"InternalServerError":             {nil, store.ExtentPart},
	"ServiceUnavailable":              {nil, store.ExtentStore},
	"ConditionalCheckFailedException": {store.ErrChanged, store.ExtentCall},
}

// classify looks an error up in codes.
func classify(err error) errorClass {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return errorClass{}
	}
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return classifyCanceled(canceled)
	}
	if api.ErrorCode() == "ValidationException" && aboutSize(api.ErrorMessage()) {
		return errorClass{store.ErrTooLarge, store.ExtentCall}
	}
	return codes[api.ErrorCode()]
}

// isValidation reports whether DynamoDB refused a request as it was written.
func isValidation(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException"
}

// aboutSize reports whether a message of DynamoDB is about an item, or a
// transaction, that is too large.
func aboutSize(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "size") && strings.Contains(message, "exceed")
}

// classifyCanceled returns the class of a refused transaction: that of the first reason with
// a code. The reasons are named without the word Exception.
func classifyCanceled(canceled *types.TransactionCanceledException) errorClass {
	for _, reason := range canceled.CancellationReasons {
		code, message := "", ""
		if reason.Code != nil {
			code = *reason.Code
		}
		if reason.Message != nil {
			message = *reason.Message
		}
		switch code {
		case "", "None":
			continue
		case "ConditionalCheckFailed":
			return errorClass{store.ErrChanged, store.ExtentCall}
		case "TransactionConflict":
			return errorClass{ErrConflict, store.ExtentCall}
		case "ProvisionedThroughputExceeded", "ThrottlingError":
			return errorClass{ErrThrottled, store.ExtentPart}
		case "ItemCollectionSizeLimitExceeded":
			return errorClass{store.ErrTooLarge, store.ExtentCall}
		case "ValidationError":
			if aboutSize(message) {
				return errorClass{store.ErrTooLarge, store.ExtentCall}
			}
		}
		return errorClass{nil, store.ExtentCall}
	}
	return errorClass{nil, store.ExtentCall}
}

// explain adds the method to an error, joins it with the error that callers can
// handle, and marks which calls it concerns. Answers about a record stay as they
// are.
func (s *Store) explain(method string, err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrLeaseLost) {
		return err
	}
	class := classify(err)
	if errors.Is(err, semel.ErrInDoubt) { // the code says why there is no answer, and is none itself
		class.err = nil
	}
	if errors.Is(err, errCollision) || errors.Is(err, ErrConflict) || errors.Is(err, ErrWriteRefused) {
		class = errorClass{nil, store.ExtentCall}
	}
	if errors.Is(err, errObjects) { // keys without large outcomes are served
		class = errorClass{nil, store.ExtentPart}
	}
	if class.err != nil && !errors.Is(err, class.err) {
		err = fmt.Errorf("%w: %w", class.err, err)
	}
	return store.WithExtent(fmt.Errorf("dynamostore: table %s: %s: %w", s.table, method, err), class.extent)
}
