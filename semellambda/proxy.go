package semellambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/driver"
	"github.com/semel-go/semel/semelhttp"
)

// Proxy makes the handler of a function that answers HTTP requests. T and R are the
// request and the response of one kind, such as events.APIGatewayV2HTTPRequest and
// events.APIGatewayV2HTTPResponse. The key comes from the header Idempotency-Key.
//
// Proxy passes the request through semelhttp.Middleware, so that semelhttp decides
// about keys, refusals (400, 409, 422), replays and answers. o has the same meaning, except
// that o.Detach does nothing: no client can leave an invocation, and the handler's context has
// to end before it. The operation is the route of the gateway; for a load balancer and a
// function URL, which have no routes, set o.Operation. The tenant is the account that the
// gateway has authenticated, never a name that a client can choose.
//
// If the handler returns an error, Proxy returns it, and the gateway answers 502: the
// call is in doubt, or nothing was done if the error is semel.NoEffect. A
// *semel.Failure is kept as an answer 500. In a store's Atomic another call may commit
// first; then Proxy returns that call's answer, and this handler's error does not count.
func Proxy[T Request, R Response](run semel.Runner, tenant func(ctx context.Context, request T) (string, error), o *semelhttp.Options, fn func(ctx context.Context, request T) (R, error)) (func(ctx context.Context, request T) (R, error), error) {
	if err := checkProxy[T, R](tenant != nil, o, fn != nil); err != nil {
		return nil, err
	}
	type exchange struct {
		request T
		err     error // of the handler's last run
	}
	if o != nil {
		own := *o
		own.Detach = false
		o = &own
	}
	type key struct{}
	find := func(r *http.Request) *exchange { return r.Context().Value(key{}).(*exchange) }
	middleware, err := semelhttp.Middleware(run, func(r *http.Request) (string, error) {
		return tenant(r.Context(), find(r).request)
	}, o)
	if err != nil {
		return nil, fmt.Errorf("semellambda: Proxy: %w", err)
	}
	handler := middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := find(r)
		response, err := fn(r.Context(), e.request)
		if err == nil {
			w.Header()["Content-Type"] = nil // a gateway has its own default, so semelhttp must not guess
			err = writeResponse(w, r.Method, response)
		}
		e.err = failed(w, r, err)
	}))
	return func(ctx context.Context, request T) (response R, err error) {
		ctx, cancel := withinInvocation(ctx)
		defer cancel()
		e := &exchange{request: request}
		r, err := newRequest(context.WithValue(ctx, key{}, e), request)
		if err != nil {
			return response, err
		}
		w := &recorder{header: http.Header{}}
		handler.ServeHTTP(w, r)
		if e.err != nil && w.header.Get("Idempotent-Replayed") == "" {
			return response, e.err
		}
		return w.response(request).(R), nil
	}, nil
}

// failed writes the answer of a handler that returned an error. It returns the error
// if the answer is not kept.
func failed(w http.ResponseWriter, r *http.Request, err error) error {
	failure, kept := errors.AsType[*semel.Failure](err)
	switch {
	case err == nil:
		return nil
	case kept && failure != nil && !driver.IsNoEffect(err):
		semelhttp.Final(r)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return nil
	case driver.IsNoEffect(err):
		semelhttp.NoEffect(r)
	}
	w.WriteHeader(http.StatusBadGateway)
	return err
}

func checkProxy[T Request, R Response](hasTenant bool, o *semelhttp.Options, hasHandler bool) error {
	var request T
	var errs []error
	if want, ok := (&recorder{}).response(request).(R); !ok {
		errs = append(errs, fmt.Errorf("semellambda: Proxy: a %T needs a response of its own kind, and not a %T", request, want))
	}
	if !hasTenant {
		errs = append(errs, errors.New("semellambda: Proxy: tenant: is nil; name the account, or return semel.Shared"))
	}
	if !hasHandler {
		errs = append(errs, errors.New("semellambda: Proxy: the handler is nil"))
	}
	if !hasRoutes(request) && (o == nil || o.Operation == nil) {
		errs = append(errs, fmt.Errorf("semellambda: Proxy: Options.Operation: is nil; a %T has no route that names the operation", request))
	}
	return errors.Join(errs...)
}

// BodyKey makes a semelhttp.Options.KeyFrom that selects the key from a JSON body by
// JSON pointers, as Options.KeyPointers does.
func BodyKey(pointers ...string) (func(r *http.Request, body io.Reader) (string, error), error) {
	if err := checkPointers(pointers); err != nil {
		return nil, err
	}
	return func(_ *http.Request, body io.Reader) (string, error) {
		doc, err := io.ReadAll(body)
		if err != nil {
			return "", err
		}
		return keyAt(doc, pointers)
	}, nil
}

// BodyPayload makes a semelhttp.Options.Payload that compares the fields of a JSON body
// that the JSON pointers select, and nothing else of the request.
func BodyPayload(pointers ...string) (func(r *http.Request, body io.Reader) (semel.Payload, error), error) {
	if err := checkPointers(pointers); err != nil {
		return nil, err
	}
	return func(_ *http.Request, body io.Reader) (semel.Payload, error) {
		doc, err := io.ReadAll(body)
		if err != nil {
			return semel.Payload{}, err
		}
		fields, err := fieldsAt(json.RawMessage(doc), pointers)
		return semel.JSON(fields), err
	}, nil
}
