package jsontext

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"
)

// InvalidStrings returns the strings in v that are not UTF-8, in a fixed order. doc is
// the JSON of v. encoding/json writes U+FFFD for every invalid byte, so that doc
// alone cannot tell two such strings apart.
func InvalidStrings(v any, doc []byte) [][]byte {
	if !bytes.Contains(doc, []byte(`\ufffd`)) && !bytes.Contains(doc, []byte("\ufffd")) {
		return nil
	}
	var found invalidStrings
	found.visit(reflect.ValueOf(v))
	return found
}

type invalidStrings [][]byte

// add adds s if it is not UTF-8.
func (f *invalidStrings) add(s string) {
	if !utf8.ValidString(s) {
		*f = append(*f, []byte(s))
	}
}

// visit walks through the values that encoding/json has encoded. There is no cycle,
// because encoding/json would have failed.
func (f *invalidStrings) visit(v reflect.Value) {
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || marshalsJSON(v) {
		return
	}
	if text, ok := marshaledText(v); ok {
		f.add(text)
		return
	}
	switch v.Kind() {
	case reflect.String:
		f.add(v.String())
	case reflect.Pointer, reflect.Interface:
		f.visit(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if v.Index(i).Kind() == reflect.Uint8 {
				return // bytes are encoded as base64 or as numbers
			}
			f.visit(v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(keyText(a), keyText(b)) })
		for _, k := range keys {
			f.add(keyText(k))
			f.visit(v.MapIndex(k))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if t := v.Type().Field(i); (t.IsExported() || t.Anonymous) && t.Tag.Get("json") != "-" {
				f.visit(v.Field(i))
			}
		}
	}
}

// valueAs returns v, or its address, as a T.
func valueAs[T any](v reflect.Value) (t T, ok bool) {
	if !v.CanInterface() {
		return t, false
	}
	if t, ok = v.Interface().(T); !ok && v.CanAddr() {
		t, ok = v.Addr().Interface().(T)
	}
	return t, ok
}

// marshalsJSON reports whether v writes its own JSON, which encoding/json keeps byte
// for byte.
func marshalsJSON(v reflect.Value) bool {
	_, ok := valueAs[json.Marshaler](v)
	return ok
}

// marshaledText is the text of a value that writes its own text.
func marshaledText(v reflect.Value) (text string, ok bool) {
	m, ok := valueAs[encoding.TextMarshaler](v)
	if !ok {
		return "", false
	}
	b, err := m.MarshalText()
	return string(b), err == nil
}

// keyText is the member name that encoding/json makes of a map key.
func keyText(k reflect.Value) string {
	if k.Kind() == reflect.String {
		return k.String()
	}
	if text, ok := marshaledText(k); ok {
		return text
	}
	return fmt.Sprint(k)
}
