package ledger

import (
	"encoding/json"
	"net/http"
)

// question is the part of the JSON of semel proxy --reconcile-url that the ledger
// needs.
type question struct {
	Tenant string `json:"tenant"`
	Key    string `json:"key"`
	Fence  uint64 `json:"fence"`
}

// verdict is the answer. A happened of null is "not known".
type verdict struct {
	Happened *bool     `json:"happened"`
	Final    bool      `json:"final,omitempty"`
	Response *response `json:"response,omitempty"`
}

// response is what the lost answer was, byte for byte.
type response struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

func (h *Handler) reconcile(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&q); err != nil || q.Key == "" || q.Fence == 0 {
		http.Error(w, `send {"tenant":"…","key":"…","fence":…}`, http.StatusBadRequest)
		return
	}
	answer, charge, err := h.Book.Ask(ID{q.Tenant, q.Key}, q.Fence)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var v verdict
	switch answer {
	case Yes:
		v.Happened = new(true)
		v.Response = &response{Status: http.StatusCreated, Headers: map[string]string{"Content-Type": contentType}, Body: string(charge.Receipt())}
	case No:
		v.Happened, v.Final = new(false), true
	case Unsure:
	}
	w.Header().Set("Content-Type", contentType)
	_ = json.NewEncoder(w).Encode(v) // if the caller is gone, it asks again
}
