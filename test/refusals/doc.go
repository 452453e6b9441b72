// Package refusals tests that a method does not keep the refusal of another service as its
// own result, if one of the two is protected by semelgrpc and the other by semelconnect. It
// has only tests, and is a part of neither, so that users of one need not the other.
package refusals
