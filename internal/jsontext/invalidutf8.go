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

// InvalidStrings returns the strings in v that are not UTF-8, in a fixed order. Of those
// encoding/json keeps no more than that there were some: doc, which it made of
// v, has U+FFFD in their places, as one and the same character.
func InvalidStrings(v any, doc []byte) [][]byte {
	if !bytes.Contains(doc, []byte(`\ufffd`)) && !bytes.Contains(doc, []byte("\ufffd")) {
		return nil
	}
	var raw rawFinder
	raw.in(reflect.ValueOf(v))
	return raw
}

type rawFinder [][]byte

func (f *rawFinder) text(s string) {
	if !utf8.ValidString(s) {
		*f = append(*f, []byte(s))
	}
}

// in goes through v as encoding/json did, which would have failed at a cycle.
func (f *rawFinder) in(v reflect.Value) {
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || marshals(v) {
		return
	}
	if text, ok := ownText(v); ok {
		f.text(text)
		return
	}
	switch v.Kind() {
	case reflect.String:
		f.text(v.String())
	case reflect.Pointer, reflect.Interface:
		f.in(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if v.Index(i).Kind() == reflect.Uint8 {
				return // numbers, or base64
			}
			f.in(v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(keyText(a), keyText(b)) })
		for _, k := range keys {
			f.text(keyText(k))
			f.in(v.MapIndex(k))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if t := v.Type().Field(i); (t.IsExported() || t.Anonymous) && t.Tag.Get("json") != "-" {
				f.in(v.Field(i))
			}
		}
	}
}

// as is v, or its address, as a T.
func as[T any](v reflect.Value) (t T, ok bool) {
	if !v.CanInterface() {
		return t, false
	}
	if t, ok = v.Interface().(T); !ok && v.CanAddr() {
		t, ok = v.Addr().Interface().(T)
	}
	return t, ok
}

// marshals reports whether v writes its own JSON, which is kept byte for byte.
func marshals(v reflect.Value) bool {
	_, is := as[json.Marshaler](v)
	return is
}

func ownText(v reflect.Value) (string, bool) {
	m, is := as[encoding.TextMarshaler](v)
	if !is {
		return "", false
	}
	text, err := m.MarshalText()
	return string(text), err == nil
}

// keyText is the name that a key of a map gets.
func keyText(k reflect.Value) string {
	if k.Kind() == reflect.String {
		return k.String()
	}
	if text, ok := ownText(k); ok {
		return text
	}
	return fmt.Sprint(k)
}
