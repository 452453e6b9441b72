module github.com/semel-go/semel/consume/semelamqp

go 1.26.0

require (
	github.com/rabbitmq/amqp091-go v1.16.0
	github.com/semel-go/semel v0.0.0
)
