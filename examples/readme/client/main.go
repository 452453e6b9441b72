package main

import (
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/semel-go/semel/semelhttp"
)

func main() {
	transport, err := semelhttp.NewTransport(nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}
	res, err := client.Post("http://ann:secret@127.0.0.1:8080/payments", "application/json", strings.NewReader(`{"cents": 4200}`))
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	fmt.Println(res.Status, "replayed:", semelhttp.Replayed(res))
}
