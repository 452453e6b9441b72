package semel

import "encoding/json"

// Codec turns results into bytes and back. Its name is kept with each outcome,
// and the codec that wrote an outcome reads it. Safe for concurrent use.
type Codec interface {
	// Name identifies the layout, for ever: "json", "proto".
	Name() string
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// JSONCodec is the default Codec: encoding/json, by the name "json".
func JSONCodec() Codec { return jsonCodec{} }

type jsonCodec struct{}

func (jsonCodec) Name() string                       { return "json" }
func (jsonCodec) Marshal(v any) ([]byte, error)      { return json.Marshal(v) }
func (jsonCodec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
