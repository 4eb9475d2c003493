// The kind of "200 us" upstream that is commonly written for such tests, for comparison with sweep-upstream: Go's
// standard server and time.Sleep. Run it with: go run . -listen 127.0.0.1:8080 -delay 200us
package main

import (
	"bytes"
	"flag"
	"log"
	"net/http"
	"strconv"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address and port to serve on")
	delay := flag.Duration("delay", 200*time.Microsecond, "sleep before each response")
	size := flag.Int("body", 1024, "size of each response's body, bytes")
	flag.Parse()
	body := bytes.Repeat([]byte("x"), *size)
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(*delay)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.Write(body)
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
