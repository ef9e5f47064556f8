// Go's net/http with one transport at a time. The first line of stdin describes the server, each further line a request; the
// result of each is a line of stdout. See support/conducts/carriers.py.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type description struct {
	URL        string  `json:"url"`
	CA         string  `json:"ca"`
	DeadlineMS float64 `json:"deadline_ms"`
}

type request struct {
	ID            int               `json:"id"`
	Path          string            `json:"path"`
	Headers       map[string]string `json:"headers"`
	Body          string            `json:"body"`
	CancelMS      float64           `json:"cancel_ms"`
	ApartMS       float64           `json:"apart_ms"`
	OwnConnection bool              `json:"own_connection"`
	Retire        bool              `json:"retire"`
}

type result struct {
	ID     int    `json:"id"`
	Status int    `json:"status,omitempty"`
	Body   string `json:"body"`
	Error  string `json:"error,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// laterBody is a body whose only part can be read after a pause.
type laterBody struct {
	io.Reader
	pause time.Duration
	once  sync.Once
}

func (b *laterBody) Read(p []byte) (int, error) {
	b.once.Do(func() { time.Sleep(b.pause) })
	return b.Reader.Read(p)
}

func newTransport(ca string) *http.Transport {
	pem, err := os.ReadFile(ca)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}, TLSHandshakeTimeout: 1500 * time.Millisecond,
	}
}

func send(transport *http.Transport, server description, r request) result {
	limit := server.DeadlineMS
	if r.CancelMS > 0 {
		limit = r.CancelMS
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(limit*float64(time.Millisecond)))
	defer cancel()
	var body io.Reader = strings.NewReader(r.Body)
	if r.ApartMS > 0 {
		body = &laterBody{Reader: strings.NewReader(r.Body), pause: time.Duration(r.ApartMS * float64(time.Millisecond))}
	}
	made, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+r.Path, body)
	if err != nil {
		panic(err)
	}
	made.ContentLength = int64(len(r.Body))
	for name, value := range r.Headers {
		made.Header.Set(name, value)
	}
	response, err := transport.RoundTrip(made)
	if err != nil {
		return result{ID: r.ID, Error: kind(err), Detail: err.Error()}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return result{ID: r.ID, Error: kind(err), Detail: err.Error()}
	}
	return result{ID: r.ID, Status: response.StatusCode, Body: string(bytes.TrimSpace(content))}
}

func kind(err error) string {
	var dial *net.OpError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return "untrusted"
	case errors.As(err, &dial) && dial.Op == "dial", strings.Contains(err.Error(), "TLS handshake"):
		return "unconnected"
	case strings.Contains(err.Error(), "REFUSED_STREAM"):
		return "refused"
	}
	return "lost"
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	var server description
	if err := json.Unmarshal(lines.Bytes(), &server); err != nil {
		panic(err)
	}
	transport := newTransport(server.CA)
	output := json.NewEncoder(os.Stdout)
	var mutex sync.Mutex
	var running sync.WaitGroup
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		if r.Retire {
			former := transport
			transport = newTransport(server.CA)
			time.AfterFunc(time.Second, former.CloseIdleConnections)
			continue
		}
		used := transport
		if r.OwnConnection {
			used = newTransport(server.CA)
		}
		running.Add(1)
		go func() {
			defer running.Done()
			found := send(used, server, r)
			if r.OwnConnection {
				used.CloseIdleConnections()
			}
			mutex.Lock()
			defer mutex.Unlock()
			_ = output.Encode(found)
		}()
	}
	running.Wait()
	transport.CloseIdleConnections()
}
