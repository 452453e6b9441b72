package event

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"
)

// parse reads an event in structured mode, in the JSON format.
func parse(doc []byte, contentType string) (*Event, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return nil, fmt.Errorf("the CloudEvent is no JSON object: %w", err)
	}
	e := &Event{Attributes: map[string]string{}, whole: doc, wholeType: contentType}
	for name, raw := range members {
		if string(raw) == "null" { // as if absent
			delete(members, name)
			continue
		}
		if name == "data" || name == "data_base64" {
			continue
		}
		value, err := attributeText(raw)
		if err != nil || !isName(name) {
			return nil, fmt.Errorf("the member %.50q of the CloudEvent is no attribute: its name must have small letters and digits only, and its value must be a text, a number or true or false", name)
		}
		e.Attributes[name] = value
	}
	e.ContentType = e.Attributes[attrContentType]
	delete(e.Attributes, attrContentType)
	if err := e.check(); err != nil {
		return nil, err
	}
	return e, e.parseData(members["data"], members["data_base64"])
}

// attributeText is the value of an attribute as text: a boolean or a number as JSON
// writes it.
func attributeText(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case '{', '[':
		return "", errors.New("is neither a text nor a number nor a boolean")
	}
	return string(raw), nil
}

// parseData reads the data of an event.
func (e *Event) parseData(data, encoded json.RawMessage) error {
	switch {
	case data != nil && encoded != nil:
		return errors.New("the CloudEvent has both data and data_base64")
	case encoded != nil:
		var text string
		err := json.Unmarshal(encoded, &text)
		if err == nil {
			e.Data, err = base64.StdEncoding.DecodeString(text)
		}
		if err != nil {
			return errors.New("data_base64 of the CloudEvent is no base64")
		}
		return nil
	case data == nil:
		return nil
	case e.ContentType == "": // the format says that JSON data then are application/json
		e.ContentType = "application/json"
	case !isJSON(e.ContentType) && data[0] == '"':
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		e.Data = []byte(text)
		return nil
	}
	e.Data = data
	return nil
}

// isJSON reports whether a media type is JSON.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json"))
}

// document writes the event in the JSON format.
func (e *Event) document() ([]byte, error) {
	if e.Encoding != "" {
		return nil, fmt.Errorf("the data have the encoding %.50q, which structured mode cannot tell; deliver such messages in binary mode", e.Encoding)
	}
	members := map[string]any{}
	for name, value := range e.Attributes {
		members[name] = value
	}
	if e.ContentType != "" {
		members[attrContentType] = e.ContentType
	}
	switch {
	case len(e.Data) == 0:
	case isJSON(e.ContentType) && json.Valid(e.Data):
		members["data"] = json.RawMessage(e.Data)
	case strings.HasPrefix(e.ContentType, "text/") && utf8.Valid(e.Data):
		members["data"] = string(e.Data)
	default:
		members["data_base64"] = e.Data // package json writes bytes in base64
	}
	var b bytes.Buffer
	w := json.NewEncoder(&b)
	w.SetEscapeHTML(false)
	if err := w.Encode(members); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
