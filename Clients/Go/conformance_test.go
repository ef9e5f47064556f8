package apnsmock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// A vector is one of the conformance vectors of all client libraries, see Clients/Conformance/README.md.
type vector struct {
	Name      string         `json:"name"`
	Call      string         `json:"call"`
	Scope     string         `json:"scope"`
	Arguments map[string]any `json:"arguments"`
	Exchanges []struct {
		Request  map[string]any `json:"request"`
		Response struct {
			Status int             `json:"status"`
			Body   json.RawMessage `json:"body"`
			Text   *string         `json:"text"`
		} `json:"response"`
	} `json:"exchanges"`
	Result any `json:"result"`
	Error  *struct {
		Kind string `json:"kind"`
		Text string `json:"text"`
	} `json:"error"`
}

func TestConformance(t *testing.T) {
	for _, name := range []string{"requests.json", "inbox.json"} {
		data, err := os.ReadFile(filepath.Join("..", "Conformance", name))
		if err != nil {
			t.Fatal(err)
		}
		var vectors []vector
		if err := json.Unmarshal(data, &vectors); err != nil {
			t.Fatal(err)
		}
		for _, vector := range vectors {
			vector := vector
			t.Run(vector.Name, func(t *testing.T) { vector.run(t) })
		}
	}
}

func (v vector) run(t *testing.T) {
	next := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next == len(v.Exchanges) {
			t.Errorf("unexpected request %s %s", r.Method, r.URL)
			w.WriteHeader(599)
			return
		}
		exchange := v.Exchanges[next]
		next++
		_, isText := exchange.Request["text"]
		found, err := described(r, isText)
		if err != nil || !reflect.DeepEqual(found, exchange.Request) {
			t.Errorf("wanted %v, found %v, error %v", exchange.Request, found, err)
		}
		content := []byte(exchange.Response.Body)
		if exchange.Response.Text != nil {
			content = []byte(*exchange.Response.Text)
		}
		w.WriteHeader(exchange.Response.Status)
		_, _ = w.Write(content)
	}))
	defer server.Close()
	client := (&Client{admin: server.URL, http: server.Client()}).Scoped(v.Scope)
	result, err := v.make(client)
	var unknown *unknownCallError
	switch {
	case errors.As(err, &unknown):
		t.Error(err)
	case v.Error != nil:
		v.checkError(t, err)
	case err != nil:
		t.Error(err)
	case !reflect.DeepEqual(result, v.Result):
		t.Errorf("wanted the result %v, found %v", v.Result, result)
	}
	if next < len(v.Exchanges) {
		t.Errorf("the client did not make %d requests", len(v.Exchanges)-next)
	}
}

// described returns a request in the form of the vectors.
func described(r *http.Request, isText bool) (map[string]any, error) {
	found := map[string]any{"method": r.Method, "path": r.URL.EscapedPath()}
	if query := r.URL.Query(); len(query) > 0 {
		values := map[string]any{}
		for name, texts := range query {
			var list []any
			for _, text := range texts {
				list = append(list, text)
			}
			values[name] = list
		}
		found["query"] = values
	}
	data, err := io.ReadAll(r.Body)
	if err != nil || len(data) == 0 {
		return found, err
	}
	if isText {
		found["text"] = string(data)
		return found, nil
	}
	var body any
	err = json.Unmarshal(data, &body)
	found["body"] = body
	return found, err
}

func (v vector) checkError(t *testing.T, err error) {
	if err == nil || err.Error() != v.Error.Text {
		t.Fatalf("wanted the error %q, found %v", v.Error.Text, err)
	}
	var (
		wait    *WaitError
		verify  *VerifyError
		problem *APIError
	)
	kind := "client"
	if errors.As(err, &wait) || errors.As(err, &verify) {
		kind = "expectation"
	} else if errors.As(err, &problem) {
		kind = "request"
	}
	if kind != v.Error.Kind {
		t.Errorf("wanted an error of kind %s, found %T", v.Error.Kind, err)
	}
}

type unknownCallError struct{ call string }

func (e *unknownCallError) Error() string { return fmt.Sprintf("the Go client has no call %q", e.call) }

// make makes the call and returns its result as a JSON value.
func (v vector) make(client *Client) (any, error) {
	ctx := context.Background()
	text := func(name string) string { value, _ := v.Arguments[name].(string); return value }
	object := func(name string) Object { value, _ := v.Arguments[name].(map[string]any); return value }
	duration := func(name string) time.Duration {
		value, _ := v.Arguments[name].(float64)
		return time.Duration(value) * time.Millisecond
	}
	instant := func(name string) (at time.Time) {
		at, _ = time.Parse(time.RFC3339Nano, text(name))
		return at
	}
	filter := Filter(object("filter"))
	if query := text("query"); query != "" {
		filter = Filter{"q": query}
	}
	switch v.Call {
	case "reset":
		return nil, client.Reset(ctx, texts(v.Arguments["keep"])...)
	case "profile":
		if seed, hasSeed := v.Arguments["seed"].(float64); hasSeed {
			return nil, client.ProfileWithSeed(ctx, text("reference"), uint64(seed))
		}
		return nil, client.Profile(ctx, text("reference"))
	case "rule":
		rule := object("rule")
		if ttl := duration("ttl_ms"); ttl > 0 {
			rule["ttl"] = milliseconds(ttl)
		}
		return nil, client.Rule(ctx, rule)
	case "device":
		state := Object{"state": text("state")}
		if since := text("since"); since != "" {
			state["since"] = timestamp(instant("since"))
		}
		return nil, client.SetDevice(ctx, text("token"), state)
	case "clock_freeze":
		return nil, client.FreezeClock(ctx, instant("now"))
	case "clock_advance":
		return nil, client.AdvanceClock(ctx, duration("by_ms"))
	case "clock_real":
		return nil, client.ResumeClock(ctx)
	case "pushes":
		pushes, err := client.Pushes(ctx, filter)
		return seqs(pushes), err
	case "wait":
		count := AtLeast(0)
		if number, isExact := object("count")["exactly"].(float64); isExact {
			count = Exactly(int(number))
		} else if number, ok := object("count")["at_least"].(float64); ok {
			count = AtLeast(int(number))
		}
		var options []WaitOption
		if v.Arguments["timeout_ms"] != nil {
			options = append(options, Within(duration("timeout_ms")))
		}
		if v.Arguments["settle_ms"] != nil {
			options = append(options, Settle(duration("settle_ms")))
		}
		pushes, err := client.Wait(ctx, count, filter, options...)
		return seqs(pushes), err
	case "verify":
		if document := object("document"); document != nil {
			return nil, client.VerifyDocument(ctx, document)
		}
		var expectations []Object
		list, _ := v.Arguments["expectations"].([]any)
		for _, item := range list {
			expectation, _ := item.(map[string]any)
			expectations = append(expectations, expectation)
		}
		return nil, client.Verify(ctx, expectations...)
	case "assert_nothing_lost":
		return nil, client.VerifyNothingLost(ctx)
	case "check":
		isAny, _ := v.Arguments["fail_on_findings"].(bool)
		rejected, _ := v.Arguments["fail_on_rejected"].(bool)
		names := texts(v.Arguments["fail_on_findings"])
		return nil, client.Check(ctx, Checks{Findings: isAny, FindingNames: names, Rejected: rejected})
	case "findings":
		findings, err := client.Findings(ctx, filter)
		names := []any{}
		for _, finding := range findings {
			names = append(names, finding.Name)
		}
		return names, err
	case "report":
		return client.Report(ctx)
	case "export":
		data, err := client.Export(ctx, filter)
		return string(data), err
	case "import":
		return nil, client.Import(ctx, bytes.NewReader([]byte(text("text"))))
	}
	return nil, &unknownCallError{v.Call}
}

func texts(value any) []string {
	var texts []string
	list, _ := value.([]any)
	for _, item := range list {
		text, _ := item.(string)
		texts = append(texts, text)
	}
	return texts
}

func seqs(pushes []Push) []any {
	seqs := []any{}
	for _, push := range pushes {
		seqs = append(seqs, float64(push.Seq))
	}
	return seqs
}

func TestUnknownCallNamesCallAndClient(t *testing.T) {
	_, err := vector{Call: "subscribe"}.make(&Client{})
	if err == nil || !strings.Contains(err.Error(), `the Go client has no call "subscribe"`) {
		t.Errorf("error %v", err)
	}
}
