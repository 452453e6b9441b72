// Command benchmarks measures Semel beside other ways to make a call take effect once,
// and writes docs/benchmarks.md, docs/sizing.md, docs/scale.md and their charts.
//
//	go run ./benchmarks -out ../docs
//	go run ./benchmarks -out ../docs -only growth,sizes
//	go run ./benchmarks -out ../docs -only none
//
// Each section writes its figures to a file in docs/benchmarks, and the pages are made
// from these files alone. The last command makes the pages without measuring.
package main
