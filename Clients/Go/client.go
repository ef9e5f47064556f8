package apnsmock

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Topic is the topic that the server's provider certificate contains. Provider tokens are accepted for every topic.
const Topic = "com.example.app"

// requestTimeout bounds calls that do not wait for pushes. The server limits waits to maxWait.
const (
	requestTimeout = 30 * time.Second
	maxWait        = 5 * time.Minute
	exitPatience   = time.Second
)

// Settings are the values that a provider needs to send pushes to the server.
type Settings struct {
	// Host and Port are the address of the APNs listener.
	Host string
	Port int
	// URL is the base URL of the APNs listener, such as https://127.0.0.1:40123.
	URL string
	// CA is the path of the certificate authority to trust, in PEM.
	CA string
	// Key is the path of the provider key, a .p8 file. KeyID and TeamID belong to it.
	Key, KeyID, TeamID string
	// Topic is com.example.app; the server accepts every other topic too.
	Topic string
}

// Client calls the admin API of a server. It is safe for concurrent use.
type Client struct {
	settings Settings
	admin    string
	token    string
	scope    string
	http     *http.Client
	// process is nil if the server was not started by this client.
	process *process
	// run records the tests; nil for a client that no test uses.
	run *run
}

// Launch starts a server with free ports and certificates in a temporary folder, and waits until it is ready. The
// arguments are added to those of `apns-mock serve`. Call [Client.Stop] to end it.
func Launch(ctx context.Context, arguments ...string) (*Client, error) {
	process, ports, err := startProcess(ctx, arguments)
	if err != nil {
		return nil, err
	}
	client, err := connect(ctx, ports)
	if err != nil {
		process.terminate()
		return nil, err
	}
	client.process = process
	return client, nil
}

// FromEnvironment connects to the server that `apns-mock exec` started. It reads APNS_MOCK_ADMIN (an address or a URL)
// and APNS_MOCK_PORT_FILE, APNS_MOCK_APNS, APNS_MOCK_CA, APNS_MOCK_KEY, APNS_MOCK_KEY_ID, APNS_MOCK_TEAM_ID and
// APNS_MOCK_ADMIN_TOKEN. [Client.Stop] does not end this server.
func FromEnvironment(ctx context.Context) (*Client, error) {
	return Connect(ctx, os.Getenv)
}

// Connect connects to a server that variables describe, as FromEnvironment does, which get returns.
func Connect(ctx context.Context, get func(variable string) string) (*Client, error) {
	var ports portFile
	if path := get("APNS_MOCK_PORT_FILE"); path != "" {
		var err error
		if ports, err = readPortFile(path); err != nil {
			return nil, fmt.Errorf("cannot read the file that APNS_MOCK_PORT_FILE names: %w", err)
		}
	}
	if err := overrideAddress(&ports.Admin, "APNS_MOCK_ADMIN", get); err != nil {
		return nil, err
	}
	if ports.Admin.Port == 0 {
		return nil, errors.New("neither APNS_MOCK_ADMIN nor APNS_MOCK_PORT_FILE is set: run the tests with `apns-mock exec -- go test ./...`, or start a server with Launch")
	}
	var apns address
	if err := overrideAddress(&apns, "APNS_MOCK_APNS", get); err != nil {
		return nil, err
	}
	if apns.Port != 0 {
		ports.APNs = []address{apns}
	}
	for name, value := range map[string]*string{
		"APNS_MOCK_CA": &ports.CA, "APNS_MOCK_KEY": &ports.Key, "APNS_MOCK_KEY_ID": &ports.KeyID,
		"APNS_MOCK_TEAM_ID": &ports.TeamID, "APNS_MOCK_ADMIN_TOKEN": &ports.AdminToken,
	} {
		if set := get(name); set != "" {
			*value = set
		}
	}
	return connect(ctx, ports)
}

// overrideAddress replaces an address by that of an environment variable: HOST:PORT, a list of which the first counts,
// or a URL.
func overrideAddress(target *address, variable string, get func(string) string) error {
	value := get(variable)
	if value == "" {
		return nil
	}
	first := strings.SplitN(value, ",", 2)[0]
	first = strings.TrimSuffix(strings.TrimPrefix(first, "http://"), "/")
	host, port, err := net.SplitHostPort(first)
	if err == nil {
		target.Host = host
		target.Port, err = strconv.Atoi(port)
	}
	if err != nil {
		return fmt.Errorf("%s is %q: set it to HOST:PORT", variable, value)
	}
	return nil
}

// connect returns a client for the server with these addresses, after a check of its version.
func connect(ctx context.Context, ports portFile) (*Client, error) {
	client := &Client{
		admin: "http://" + net.JoinHostPort(ports.Admin.Host, strconv.Itoa(ports.Admin.Port)),
		token: ports.AdminToken,
		http:  &http.Client{Transport: &http.Transport{Proxy: nil, MaxIdleConnsPerHost: 16}},
	}
	status, err := client.status(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(status.Version); err != nil {
		return nil, err
	}
	if len(ports.APNs) == 0 {
		ports.APNs = status.Addresses.APNs
	}
	if len(ports.APNs) == 0 {
		return nil, fmt.Errorf("the server at %s has no APNs listener: connect to a server started with `apns-mock serve` or `apns-mock exec`", client.admin)
	}
	first := ports.APNs[0]
	client.settings = Settings{
		Host: first.Host, Port: first.Port, URL: "https://" + net.JoinHostPort(first.Host, strconv.Itoa(first.Port)),
		CA: ports.CA, Key: ports.Key, KeyID: ports.KeyID, TeamID: ports.TeamID, Topic: Topic,
	}
	return client, nil
}

// checkVersion returns an error if a server of this version is not compatible with this client.
func checkVersion(server string) error {
	if compatibleSeries(server) == compatibleSeries(Version) {
		return nil
	}
	return fmt.Errorf("the apns-mock server has version %s and this client has version %s: install apns-mock %s.x, or the client of the server's version", server, Version, compatibleSeries(Version))
}

// compatibleSeries returns the part of a version that compatible versions share: "0.1" of "0.1.3", "2" of "2.4.0".
func compatibleSeries(version string) string {
	parts := strings.Split(version, ".")
	if parts[0] == "0" && len(parts) > 1 {
		return parts[0] + "." + parts[1]
	}
	return parts[0]
}

// Stop ends a server that [Launch] started and removes its folder. Further calls do nothing.
func (c *Client) Stop() {
	if c.run != nil {
		c.run.end()
	}
	c.http.CloseIdleConnections()
	if c.process != nil {
		c.process.terminate()
	}
}

// Settings returns the values that a provider needs.
func (c *Client) Settings() Settings { return c.settings }

// AdminURL returns the base URL of the admin API and the web UI.
func (c *Client) AdminURL() string { return c.admin }

// Scoped returns a client of the same server that is restricted to the pushes that a query matches, such as
// "topic:com.acme.w3": it resets, lists, verifies and exports only these.
func (c *Client) Scoped(query string) *Client {
	scoped := *c
	scoped.scope = query
	return &scoped
}

// HTTPClient returns an HTTP/2 client for pushes that trusts the server's certificate.
func (c *Client) HTTPClient() (*http.Client, error) {
	data, err := os.ReadFile(c.settings.CA)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate authority of the server: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s contains no certificate", c.settings.CA)
	}
	return &http.Client{Transport: &http.Transport{
		Proxy:             nil,
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}}, nil
}

// DeviceToken returns a new random device token of 64 hexadecimal digits.
func DeviceToken() string {
	var token [32]byte
	if _, err := rand.Read(token[:]); err != nil {
		panic("apnsmock: the system has no source of random numbers: " + err.Error())
	}
	return hex.EncodeToString(token[:])
}

// APIError is an error response of the admin API.
type APIError struct {
	// Status is the HTTP status.
	Status int `json:"status"`
	// Detail says what is wrong, Hint how to correct it.
	Detail string `json:"detail"`
	Hint   string `json:"hint"`
	// Problems are all problems, if the server found several.
	Problems []Problem `json:"problems"`
	// Request is the method and the path of the request.
	Request string `json:"-"`
}

// Problem is one of several problems of a request.
type Problem struct {
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

func (e *APIError) Error() string {
	message := fmt.Sprintf("apns-mock responded with %d to %s: %s", e.Status, e.Request, sentence(e.Detail, e.Hint))
	if len(e.Problems) > 1 {
		for _, problem := range e.Problems {
			message += "\n  " + sentence(problem.Message, problem.Hint)
		}
	}
	return message
}

func sentence(message, hint string) string {
	if hint == "" {
		return message
	}
	return message + ". " + hint
}

// request is a call of the admin API.
type request struct {
	method, path string
	query        url.Values
	// body is sent as JSON unless it is nil or an io.Reader, which is sent as NDJSON.
	body    any
	timeout time.Duration
}

// call sends a request and decodes the JSON of the response into result, unless that is nil.
func (c *Client) call(ctx context.Context, r request, result any) error {
	data, err := c.send(ctx, r)
	if err != nil || result == nil {
		return err
	}
	if err := json.Unmarshal(data, result); err != nil {
		return fmt.Errorf("%s %s: the response is not valid: %w", r.method, r.path, err)
	}
	return nil
}

// send sends a request and returns the body of the response. Status 412 is not an error: its body is a report.
func (c *Client) send(ctx context.Context, r request) ([]byte, error) {
	if c.process != nil {
		if err := c.process.exitError(0); err != nil {
			return nil, err
		}
	}
	if r.timeout == 0 {
		r.timeout = requestTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	body, contentType, err := encodeBody(r.body)
	if err != nil {
		return nil, fmt.Errorf("the body of %s %s cannot be written as JSON: %w", r.method, r.path, err)
	}
	status, data, err := c.exchange(ctx, r, body, contentType)
	if err != nil {
		if c.process != nil {
			if exit := c.process.exitError(exitPatience); exit != nil {
				return nil, exit
			}
		}
		return nil, fmt.Errorf("the apns-mock server did not respond: %w", err)
	}
	if status < 300 || status == http.StatusPreconditionFailed {
		return data, nil
	}
	problem := &APIError{Request: r.method + " " + r.path}
	if json.Unmarshal(data, problem) != nil || problem.Detail == "" {
		problem.Detail = excerpt(data)
	}
	problem.Status = status
	return nil, problem
}

// excerpt returns the beginning of a response that is not a problem document.
func excerpt(data []byte) string {
	text := []rune(string(data))
	if len(text) == 0 {
		return "no explanation"
	}
	if len(text) > 200 {
		text = text[:200]
	}
	return string(text)
}

func (c *Client) exchange(ctx context.Context, r request, body io.Reader, contentType string) (int, []byte, error) {
	target := c.admin + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	message, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		message.Header.Set("content-type", contentType)
	}
	if c.token != "" {
		message.Header.Set("authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(message)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return response.StatusCode, data, err
}

func encodeBody(body any) (reader io.Reader, contentType string, err error) {
	switch body := body.(type) {
	case nil:
		return nil, "", nil
	case io.Reader:
		return body, "application/x-ndjson", nil
	default:
		data, err := json.Marshal(body)
		return bytes.NewReader(data), "application/json", err
	}
}
