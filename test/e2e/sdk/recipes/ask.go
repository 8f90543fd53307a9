package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

const body = `{"model": "gpt-4o-mini", "stream": true,
  "messages": [{"role": "user", "content": "How much water does the canal take?"}]}`

func main() {
	url := os.Args[1] + "/openai/v1/chat/completions"
	request, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Args[2])
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Headgate-Max-Wait", "60s")
	// This timeout covers the whole stream.
	client := &http.Client{Timeout: 5 * time.Minute}
	response, err := client.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		log.Fatal(err)
	}
}
