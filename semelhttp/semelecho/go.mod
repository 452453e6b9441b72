module github.com/semel-go/semel/semelhttp/semelecho

go 1.26.0

require (
	github.com/labstack/echo/v5 v5.4.5
	github.com/semel-go/semel v0.0.0
)
