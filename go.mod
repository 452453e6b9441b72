module github.com/semel-go/semel

go 1.26.0
