module github.com/semel-go/semel/semellambda

go 1.26.0

require (
	github.com/aws/aws-lambda-go v1.55.1
	github.com/semel-go/semel v0.0.0
)
