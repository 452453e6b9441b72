// Package jsontext brings JSON documents into the canonical form of RFC 8785, so
// that documents with the same meaning have the same bytes.
package jsontext
