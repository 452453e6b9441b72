package semellambda

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"
)

// Response is the answer to a [Request] of the same kind.
type Response interface {
	events.APIGatewayProxyResponse | events.APIGatewayV2HTTPResponse | events.ALBTargetGroupResponse | events.LambdaFunctionURLResponse
}

// recorder is an http.ResponseWriter that keeps the answer.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// writeResponse writes a handler's response. A response without a status is silence,
// as from a handler that wrote nothing. As a gateway does, it ignores a body that the
// status does not allow, and a Content-Length: the gateway counts the bytes.
func writeResponse(w http.ResponseWriter, method string, response any) error {
	status, single, multi, cookies, body, encoded := split(response)
	if status == 0 {
		return nil
	}
	content := []byte(body)
	if encoded {
		var err error
		if content, err = base64.StdEncoding.DecodeString(body); err != nil {
			return fmt.Errorf("semellambda: Proxy: IsBase64Encoded is set, but the handler's body is not base64: %w", err)
		}
	}
	for name, values := range headerOf(single, multi) {
		w.Header()[name] = values
	}
	for _, c := range cookies {
		w.Header().Add("Set-Cookie", c)
	}
	if method != http.MethodHead {
		w.Header().Del("Content-Length")
	}
	w.WriteHeader(status)
	if _, err := w.Write(content); !errors.Is(err, http.ErrBodyNotAllowed) {
		return err
	}
	return nil
}

func split(response any) (status int, single map[string]string, multi map[string][]string, cookies []string, body string, encoded bool) {
	switch r := response.(type) {
	case events.APIGatewayProxyResponse:
		return r.StatusCode, r.Headers, r.MultiValueHeaders, nil, r.Body, r.IsBase64Encoded
	case events.APIGatewayV2HTTPResponse:
		return r.StatusCode, r.Headers, r.MultiValueHeaders, r.Cookies, r.Body, r.IsBase64Encoded
	case events.ALBTargetGroupResponse:
		return r.StatusCode, r.Headers, r.MultiValueHeaders, nil, r.Body, r.IsBase64Encoded
	case events.LambdaFunctionURLResponse:
		return r.StatusCode, r.Headers, nil, r.Cookies, r.Body, r.IsBase64Encoded
	}
	panic(fmt.Sprintf("semellambda: no response: %T", response)) // Response has no other type
}

// response makes the response that belongs to a request.
func (r *recorder) response(request any) any {
	maps.DeleteFunc(r.header, func(_ string, values []string) bool { return len(values) == 0 }) // would be null, or an empty header
	body, encoded := r.body.String(), false
	if !utf8.ValidString(body) || r.header.Get("Content-Encoding") != "" {
		body, encoded = base64.StdEncoding.EncodeToString(r.body.Bytes()), true
	}
	switch request := request.(type) {
	case events.APIGatewayProxyRequest:
		return events.APIGatewayProxyResponse{StatusCode: r.status, MultiValueHeaders: r.header, Body: body, IsBase64Encoded: encoded}
	case events.APIGatewayV2HTTPRequest:
		cookies := r.takeCookies()
		return events.APIGatewayV2HTTPResponse{StatusCode: r.status, Headers: r.joined(), Cookies: cookies, Body: body, IsBase64Encoded: encoded}
	case events.LambdaFunctionURLRequest:
		cookies := r.takeCookies()
		return events.LambdaFunctionURLResponse{StatusCode: r.status, Headers: r.joined(), Cookies: cookies, Body: body, IsBase64Encoded: encoded}
	case events.ALBTargetGroupRequest:
		a := events.ALBTargetGroupResponse{
			StatusCode: r.status, StatusDescription: strconv.Itoa(r.status) + " " + http.StatusText(r.status), Body: body, IsBase64Encoded: encoded,
		}
		if request.MultiValueHeaders != nil { // a setting of the target group, for requests and responses
			a.MultiValueHeaders = r.header
		} else {
			a.Headers = r.joined()
		}
		return a
	}
	panic(fmt.Sprintf("semellambda: no request: %T", request))
}

func (r *recorder) takeCookies() []string {
	cookies := r.header["Set-Cookie"]
	delete(r.header, "Set-Cookie")
	return cookies
}

// joined are the headers in the form that has one value for each name.
func (r *recorder) joined() map[string]string {
	h := map[string]string{}
	for name, values := range r.header {
		h[name] = strings.Join(values, ", ")
	}
	return h
}
