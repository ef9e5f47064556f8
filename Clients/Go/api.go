package apnsmock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"time"
)

// Object is a JSON object, such as a fault rule or an expectation.
type Object map[string]any

// Filter selects pushes by the fields of the inbox, such as {"topic": "com.example.*", "status": 410}, or by a query
// {"q": "status:410 !type:background"}. A value is a string, a number, a boolean, or a slice of these, which matches any
// of its elements. The server rejects unknown fields.
type Filter map[string]any

// values returns the filter as parameters of a request, restricted to the client's scope.
func (c *Client) values(filter Filter) (url.Values, error) {
	values := url.Values{}
	for name, value := range filter {
		items, err := filterValues(reflect.ValueOf(value))
		if err != nil {
			return nil, fmt.Errorf("the filter %q has the value %v of type %T: use a string, a number, a boolean, or a slice of these", name, value, value)
		}
		values[name] = items
	}
	if c.scope != "" {
		values.Set("scope", c.scope)
	}
	return values, nil
}

var errUnsupportedFilter = errors.New("unsupported type")

func filterValues(value reflect.Value) ([]string, error) {
	switch value.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return []string{fmt.Sprint(value.Interface())}, nil
	case reflect.Slice, reflect.Array:
		// An empty list would be no condition at all.
		if value.Len() == 0 {
			return nil, errUnsupportedFilter
		}
		var items []string
		for i := 0; i < value.Len(); i++ {
			element := value.Index(i)
			if element.Kind() == reflect.Interface {
				element = element.Elem()
			}
			item, err := filterValues(element)
			if err != nil {
				return nil, err
			}
			items = append(items, item...)
		}
		return items, nil
	default:
		return nil, errUnsupportedFilter
	}
}

// withScope returns a body restricted to the client's scope.
func (c *Client) withScope(body Object) Object {
	if c.scope == "" {
		return body
	}
	scoped := Object{"scope": c.scope}
	for name, value := range body {
		scoped[name] = value
	}
	return scoped
}

// status is the part of the server's state that a client needs.
type status struct {
	Version   string `json:"version"`
	Addresses struct {
		APNs []address `json:"apns"`
	} `json:"addresses"`
}

func (c *Client) status(ctx context.Context) (status, error) {
	var result status
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/v1/status"}, &result)
	return result, err
}

// ActiveProfile is the fault profile that the server applies.
type ActiveProfile struct {
	// Reference is its name with parameters, such as flaky-503?rate=0.3.
	Reference string `json:"reference"`
	// Seed is the seed of its decisions.
	Seed uint64 `json:"seed"`
}

// ActiveProfile returns the fault profile that the server applies.
func (c *Client) ActiveProfile(ctx context.Context) (ActiveProfile, error) {
	var active ActiveProfile
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/v1/profile"}, &active)
	return active, err
}

// Reset restores the state after start: inbox, counters, rules, profile, clock and devices. The arguments name parts
// that are kept, such as "profile". A scoped client removes only the pushes of its scope.
func (c *Client) Reset(ctx context.Context, keep ...string) error {
	body := Object{}
	if len(keep) > 0 {
		body["keep"] = keep
	}
	return c.call(ctx, request{method: http.MethodPost, path: "/api/v1/reset", body: c.withScope(body)}, nil)
}

// Profile activates a fault profile: a name, or a reference with parameters such as "flaky-503?rate=0.3".
func (c *Client) Profile(ctx context.Context, reference string) error {
	return c.putProfile(ctx, Object{"name": reference})
}

// ProfileWithSeed activates a fault profile with a seed. The same seed gives the same decisions.
func (c *Client) ProfileWithSeed(ctx context.Context, reference string, seed uint64) error {
	return c.putProfile(ctx, Object{"name": reference, "seed": seed})
}

func (c *Client) putProfile(ctx context.Context, body Object) error {
	return c.call(ctx, request{method: http.MethodPut, path: "/api/v1/profile", body: body}, nil)
}

// Rule adds a fault rule such as {"name": "down", "do": {"respond": {"status": 503}}, "ttl": "30s"}.
func (c *Client) Rule(ctx context.Context, rule Object) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/api/v1/rules", body: rule}, nil)
}

// Device states.
const (
	deviceOnline       = "online"
	deviceUnregistered = "unregistered"
	deviceExpired      = "expired"
)

// SetDevice sets the state of a device token: {"state": "unregistered", "since": "2026-01-01T00:00:00Z"}, or
// {"topic": "com.acme.app"}.
func (c *Client) SetDevice(ctx context.Context, token string, state Object) error {
	path := "/api/v1/devices/" + url.PathEscape(token)
	return c.call(ctx, request{method: http.MethodPut, path: path, body: state}, nil)
}

// FreezeClock stops the server's clock at a time, or at its present time if that is zero.
func (c *Client) FreezeClock(ctx context.Context, at time.Time) error {
	body := Object{"mode": "frozen"}
	if !at.IsZero() {
		body["now"] = timestamp(at)
	}
	return c.call(ctx, request{method: http.MethodPut, path: "/api/v1/clock", body: body}, nil)
}

// AdvanceClock moves the server's clock, for example by 61 minutes to let provider tokens expire.
func (c *Client) AdvanceClock(ctx context.Context, by time.Duration) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/api/v1/clock/advance", body: Object{"by": milliseconds(by)}}, nil)
}

// ResumeClock lets the server's clock follow the machine's clock.
func (c *Client) ResumeClock(ctx context.Context) error {
	return c.call(ctx, request{method: http.MethodPut, path: "/api/v1/clock", body: Object{"mode": "real"}}, nil)
}

// timestamp returns a time as the server reads it.
func timestamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// milliseconds returns a duration as the server reads it.
func milliseconds(duration time.Duration) string {
	return strconv.FormatInt(duration.Milliseconds(), 10) + "ms"
}

// Pushes returns the records that a filter selects, in the order of arrival; a nil filter selects all.
func (c *Client) Pushes(ctx context.Context, filter Filter) ([]Push, error) {
	values, err := c.values(filter)
	if err != nil {
		return nil, err
	}
	values.Set("limit", "1000")
	var pushes []Push
	for {
		var page struct {
			Items    []Push `json:"items"`
			Next     *int64 `json:"next"`
			Complete bool   `json:"complete"`
			Evicted  int    `json:"evicted"`
		}
		if err := c.call(ctx, request{method: http.MethodGet, path: "/api/v1/pushes", query: values}, &page); err != nil {
			return nil, err
		}
		if !page.Complete {
			return nil, fmt.Errorf("%d pushes are missing because the inbox is full: start the server with a larger --max-records or --max-bytes.", page.Evicted)
		}
		pushes = append(pushes, page.Items...)
		if page.Next == nil {
			return pushes, nil
		}
		values.Set("after", strconv.FormatInt(*page.Next, 10))
	}
}

// Count is a condition on a number of pushes: [AtLeast] or [Exactly].
type Count struct {
	number int
	exact  bool
}

// AtLeast is the condition of n or more pushes. To wait for silence, use Exactly(0).
func AtLeast(n int) Count { return Count{number: n} }

// Exactly is the condition of n pushes. Add [Settle]; otherwise a further push could still arrive.
func Exactly(n int) Count { return Count{number: n, exact: true} }

func (c Count) parameter() (string, error) {
	if c.number < 0 || c.number == 0 && !c.exact {
		return "", fmt.Errorf("cannot wait for at least %d pushes: use AtLeast(1) or more, or Exactly(0) for none", c.number)
	}
	if c.exact && c.number > 0 {
		return "=" + strconv.Itoa(c.number), nil
	}
	return strconv.Itoa(c.number), nil
}

// WaitOption changes how [Client.Wait] waits: [Within], [Settle].
type WaitOption func(*waitOptions)

type waitOptions struct{ timeout, settle *time.Duration }

// Within sets the maximum time of a wait: 10 seconds by default, at most 5 minutes.
func Within(timeout time.Duration) WaitOption { return func(o *waitOptions) { o.timeout = &timeout } }

// Settle sets the time for which the number of matching pushes must not change.
func Settle(settle time.Duration) WaitOption { return func(o *waitOptions) { o.settle = &settle } }

// WaitError reports that the pushes a test waited for did not arrive.
type WaitError struct {
	// Text is the expected and the actual number, and the nearest pushes with the expected and the actual values.
	Text string
	// Nearest are the seq of these pushes.
	Nearest []int64
}

func (e *WaitError) Error() string { return e.Text }

// Wait waits until the pushes since the last reset that a filter selects have a number, and returns them. It returns at
// once if they already have it. After the timeout it returns a [*WaitError] with the nearest pushes.
func (c *Client) Wait(ctx context.Context, count Count, filter Filter, options ...WaitOption) ([]Push, error) {
	values, err := c.values(filter)
	if err != nil {
		return nil, err
	}
	number, err := count.parameter()
	if err != nil {
		return nil, err
	}
	var chosen waitOptions
	for _, option := range options {
		option(&chosen)
	}
	values.Set("count", number)
	if chosen.timeout != nil {
		values.Set("timeout", milliseconds(*chosen.timeout))
	}
	if chosen.settle != nil {
		values.Set("settle", milliseconds(*chosen.settle))
	}
	var result struct {
		Satisfied bool   `json:"satisfied"`
		Matched   int    `json:"matched"`
		Items     []Push `json:"items"`
		Text      string `json:"text"`
		Nearest   []struct {
			Seq int64 `json:"seq"`
		} `json:"nearest"`
	}
	call := request{method: http.MethodGet, path: "/api/v1/pushes/wait", query: values, timeout: maxWait + requestTimeout}
	if err := c.call(ctx, call, &result); err != nil {
		return nil, err
	}
	if !result.Satisfied {
		failure := &WaitError{Text: result.Text}
		for _, push := range result.Nearest {
			failure.Nearest = append(failure.Nearest, push.Seq)
		}
		return nil, failure
	}
	if len(result.Items) < result.Matched {
		return c.Pushes(ctx, filter)
	}
	return result.Items, nil
}

// VerifyError reports that expectations are not met, or that a check found something.
type VerifyError struct {
	// Text is the report of the server.
	Text string `json:"text"`
	// Inconclusive is whether evicted records make the result uncertain.
	Inconclusive bool `json:"inconclusive"`
}

func (e *VerifyError) Error() string { return e.Text }

// Verify checks expectations such as {"match": {"topic": "com.example.app"}, "count": 1}. It returns a [*VerifyError]
// with the server's report if one is not met.
func (c *Client) Verify(ctx context.Context, expectations ...Object) error {
	return c.VerifyDocument(ctx, Object{"expect": expectations})
}

// VerifyDocument checks a whole document: "expect", "order", "no_others", "nothing_lost", "no_findings", "timeout".
func (c *Client) VerifyDocument(ctx context.Context, document Object) error {
	return c.expect(ctx, "/api/v1/verify", document)
}

// expect sends a request whose response says whether something passed, and returns a [*VerifyError] if it did not.
func (c *Client) expect(ctx context.Context, path string, body Object) error {
	var report struct {
		Passed bool `json:"passed"`
		VerifyError
	}
	call := request{method: http.MethodPost, path: path, body: c.withScope(body), timeout: maxWait + requestTimeout}
	if err := c.call(ctx, call, &report); err != nil {
		return err
	}
	if !report.Passed {
		return &report.VerifyError
	}
	return nil
}

// VerifyNothingLost checks that the last attempt of every push was accepted or permanently rejected.
func (c *Client) VerifyNothingLost(ctx context.Context) error {
	return c.VerifyDocument(ctx, Object{"nothing_lost": true})
}

// Checks are what [Client.Check] checks.
type Checks struct {
	// Findings is whether any finding is a failure.
	Findings bool
	// FindingNames are the findings that are a failure, if Findings is false.
	FindingNames []string
	// Rejected is whether a push that APNs' rules rejected is a failure.
	Rejected bool
}

// Check checks the provider at the end of a test, when no further attempt of a push can follow: every push that could
// still be retried counts as abandoned. It returns a [*VerifyError] with a line for each finding, and for each reason with
// the correction.
func (c *Client) Check(ctx context.Context, checks Checks) error {
	body := Object{}
	if checks.Findings {
		body["fail_on_findings"] = true
	} else if len(checks.FindingNames) > 0 {
		body["fail_on_findings"] = checks.FindingNames
	}
	if checks.Rejected {
		body["fail_on_rejected"] = true
	}
	if len(body) == 0 {
		return nil
	}
	return c.expect(ctx, "/api/v1/check", body)
}

// Report describes a failed test: the seed, the fault profile, the newest pushes, those that were not accepted first, and
// the findings.
func (c *Client) Report(ctx context.Context) (string, error) {
	values, err := c.values(nil)
	if err != nil {
		return "", err
	}
	var report struct {
		Text string `json:"text"`
	}
	err = c.call(ctx, request{method: http.MethodGet, path: "/api/v1/report", query: values}, &report)
	return report.Text, err
}

// Finding is a kind of mistake that the provider made although APNs accepted its pushes.
type Finding struct {
	// Name is the name of the kind, such as hot-retry.
	Name string `json:"finding"`
	// Count is the number of pushes with this finding.
	Count   int    `json:"count"`
	Summary string `json:"summary"`
	Advice  string `json:"advice"`
	// Records are the newest pushes with this finding.
	Records []FindingRecord `json:"records"`
}

// FindingRecord is a push with a finding.
type FindingRecord struct {
	Seq int64 `json:"seq"`
	// Evidence is the seq of the pushes that prove the finding.
	Evidence    []int64 `json:"evidence"`
	Explanation string  `json:"explanation"`
}

// String returns the finding in one line.
func (f Finding) String() string {
	line := fmt.Sprintf("%s (%d): %s", f.Name, f.Count, f.Summary)
	if len(f.Records) > 0 {
		line += fmt.Sprintf(" Push %d: %s.", f.Records[0].Seq, f.Records[0].Explanation)
	}
	return line
}

// Findings returns the mistakes of the provider in the pushes that a filter selects; a nil filter selects all.
func (c *Client) Findings(ctx context.Context, filter Filter) ([]Finding, error) {
	values, err := c.values(filter)
	if err != nil {
		return nil, err
	}
	var page struct {
		Items []Finding `json:"items"`
	}
	err = c.call(ctx, request{method: http.MethodGet, path: "/api/v1/findings", query: values}, &page)
	return page.Items, err
}

// Export returns the records that a filter selects as NDJSON: one record per line.
func (c *Client) Export(ctx context.Context, filter Filter) ([]byte, error) {
	values, err := c.values(filter)
	if err != nil {
		return nil, err
	}
	return c.send(ctx, request{method: http.MethodGet, path: "/api/v1/export", query: values})
}

// Import adds the records of an export to the inbox.
func (c *Client) Import(ctx context.Context, ndjson io.Reader) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/api/v1/import", body: ndjson}, nil)
}
