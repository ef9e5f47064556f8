package apnsmock

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Option configures the server of a test.
type Option func(*options)

type options struct {
	profile   string
	seed      uint64
	hasSeed   bool
	scope     string
	checks    Checks
	arguments []string
}

// WithProfile activates a fault profile, such as "flaky-503?rate=0.3".
func WithProfile(reference string) Option { return func(o *options) { o.profile = reference } }

// WithSeed sets the seed of the fault profile. The same seed gives the same decisions for the same pushes, so use the
// same device tokens in each run.
func WithSeed(seed uint64) Option { return func(o *options) { o.seed, o.hasSeed = seed, true } }

// WithScope restricts the test to the pushes that a query matches, such as "topic:com.acme.w3".
func WithScope(query string) Option { return func(o *options) { o.scope = query } }

// FailOnFindings fails the test if the server has findings about the provider: those with these names, or any. At the end
// of the test, every push that could still be retried counts as abandoned.
func FailOnFindings(names ...string) Option {
	return func(o *options) { o.checks.Findings, o.checks.FindingNames = len(names) == 0, names }
}

// FailOnRejected fails the test if APNs' rules rejected a push.
func FailOnRejected() Option { return func(o *options) { o.checks.Rejected = true } }

// WithArguments adds arguments of `apns-mock serve`, such as "--rules", "strict". With [Shared], only the arguments of
// the first test are used; tests that need others call [Start].
func WithArguments(arguments ...string) Option {
	return func(o *options) { o.arguments = append(o.arguments, arguments...) }
}

// Mock is a server in a test. Its methods fail the test at once when they fail, so call them from the goroutine of the
// test; [Mock.Client] returns a client for other goroutines.
type Mock struct {
	client *Client
	t      testing.TB
	// failure is why a method has failed the test, for the report.
	failure *failure
}

type failure struct {
	mutex sync.Mutex
	text  string
}

// note keeps the first reason.
func (f *failure) note(text string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.text == "" {
		f.text = text
	}
}

func (f *failure) message() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.text == "" {
		return "the test failed outside of the methods of apns-mock: see the output of go test"
	}
	return f.text
}

// Start starts a server for one test and stops it at the end. If the test has failed, it logs the pushes, the seed, the
// fault profile and the findings.
func Start(t testing.TB, settings ...Option) *Mock {
	t.Helper()
	chosen := choose(settings)
	client, err := Launch(context.Background(), chosen.arguments...)
	if err != nil {
		t.Fatal(err)
	}
	client.run = startRun(client)
	t.Cleanup(client.Stop)
	return prepare(t, client, chosen)
}

func choose(settings []Option) options {
	var chosen options
	for _, option := range settings {
		option(&chosen)
	}
	return chosen
}

// prepare applies the options and registers the checks and the report at the end of the test.
func prepare(t testing.TB, client *Client, chosen options) *Mock {
	t.Helper()
	ctx := context.Background()
	if chosen.scope != "" {
		client = client.Scoped(chosen.scope)
	}
	mock := &Mock{client: client, t: t, failure: &failure{}}
	test := client.run.startTest(t.Name(), chosen.scope)
	t.Cleanup(func() { mock.finish(chosen.checks, test) })
	if chosen.profile == "" && chosen.hasSeed {
		chosen.profile = "healthy"
	}
	var err error
	switch {
	case chosen.hasSeed:
		err = client.ProfileWithSeed(ctx, chosen.profile, chosen.seed)
	case chosen.profile != "":
		err = client.Profile(ctx, chosen.profile)
	}
	mock.check(err)
	return mock
}

// finish checks a test that has not failed, and logs the report of a failed one.
func (m *Mock) finish(checks Checks, test int) {
	m.t.Helper()
	cause := abnormalEnd(m.t)
	if !m.t.Failed() && cause == "" {
		if err := m.client.Check(context.Background(), checks); err != nil {
			m.failure.note(err.Error())
			m.t.Errorf("%v", err)
		}
	}
	if cause != "" {
		m.failure.note(cause)
	} else if !m.t.Failed() {
		outcome := "passed"
		if m.t.Skipped() {
			outcome = "skipped"
		}
		m.client.run.endTest(test, outcome, "")
		return
	}
	m.client.run.endTest(test, "failed", m.failure.message())
	report, err := m.client.Report(context.Background())
	if err != nil {
		report = "apns-mock: " + err.Error()
	}
	m.t.Log(report)
}

// abnormalEnd returns how a test has ended if it has neither returned nor called a method that ends it, such as FailNow or
// SkipNow; else "". Cleanup functions run before the package testing marks such a test as failed, but the panic or
// [runtime.Goexit] is still on their stack.
func abnormalEnd(t testing.TB) string {
	if t.Failed() || t.Skipped() {
		return ""
	}
	callers := make([]uintptr, 128)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	end := ""
	for {
		frame, more := frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			end = "the test panicked"
		case frame.Function == "runtime.Goexit":
			end = "the test called runtime.Goexit, or FailNow of another test"
		case end != "" && !strings.HasPrefix(frame.Function, "runtime.") && !strings.HasPrefix(frame.Function, "testing."):
			return fmt.Sprintf("%s at %s:%d: see the output of go test", end, filepath.Base(frame.File), frame.Line)
		}
		if !more {
			return end
		}
	}
}

// shared is the server of [Shared] and the tests that use it.
var shared struct {
	mutex  sync.Mutex
	client *Client
	users  []sharedUser
}

type sharedUser struct{ test, scope string }

// Shared returns the server that all tests of this process share, reset for this test. It starts the server at the first
// call. The server ends with the process; to remove its temporary folder too, and to write the report for
// APNS_MOCK_REPORTS, call [Run] in TestMain.
//
// Tests that run in parallel need a server of their own ([Start]), or scopes of their own ([WithScope]).
func Shared(t testing.TB, settings ...Option) *Mock {
	t.Helper()
	chosen := choose(settings)
	client, err := acquireShared(t, chosen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { releaseShared(t.Name()) })
	if err := client.Scoped(chosen.scope).Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	return prepare(t, client, chosen)
}

func acquireShared(t testing.TB, chosen options) (*Client, error) {
	shared.mutex.Lock()
	defer shared.mutex.Unlock()
	if chosen.scope != "" && (chosen.profile != "" || chosen.hasSeed) {
		return nil, fmt.Errorf("WithScope cannot be combined with WithProfile or WithSeed in Shared, because a profile affects all tests: use Start")
	}
	for _, user := range shared.users {
		separate := user.scope != "" && chosen.scope != "" && user.scope != chosen.scope
		parent := strings.HasPrefix(t.Name(), user.test+"/")
		if !separate && !parent && user.test != t.Name() {
			return nil, fmt.Errorf("the shared server is in use by %s, which runs in parallel: use Start, or a different WithScope for each test", user.test)
		}
	}
	// A server that one test has killed must not fail the following tests.
	if shared.client != nil && shared.client.process.exited(0) {
		shared.client.Stop()
		shared.client = nil
	}
	if shared.client == nil {
		client, err := Launch(context.Background(), chosen.arguments...)
		if err != nil {
			return nil, err
		}
		client.run = startRun(client)
		shared.client = client
	}
	shared.users = append(shared.users, sharedUser{t.Name(), chosen.scope})
	return shared.client, nil
}

func releaseShared(test string) {
	shared.mutex.Lock()
	defer shared.mutex.Unlock()
	for i, user := range shared.users {
		if user.test == test {
			shared.users = append(shared.users[:i], shared.users[i+1:]...)
			if len(shared.users) == 0 && shared.client != nil {
				shared.client.run.pause()
			}
			return
		}
	}
}

// Run runs the tests of a package, stops the server of [Shared], and returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(apnsmock.Run(m)) }
func Run(m *testing.M) int {
	defer stopShared()
	return m.Run()
}

func stopShared() {
	shared.mutex.Lock()
	defer shared.mutex.Unlock()
	if shared.client != nil {
		shared.client.Stop()
		shared.client = nil
	}
}

// check fails the test if there is an error.
func (m *Mock) check(err error) {
	m.t.Helper()
	if err != nil {
		m.failure.note(err.Error())
		m.t.Fatal(err)
	}
}

// Client returns a client of the server, whose methods return errors.
func (m *Mock) Client() *Client { return m.client }

// Settings returns the values that a provider needs to send pushes to the server.
func (m *Mock) Settings() Settings { return m.client.Settings() }

// Scoped returns the same server restricted to the pushes that a query matches, such as "topic:com.acme.w3".
func (m *Mock) Scoped(query string) *Mock {
	return &Mock{client: m.client.Scoped(query), t: m.t, failure: m.failure}
}

// HTTPClient returns an HTTP/2 client for pushes that trusts the server's certificate. Its connections are closed at the
// end of the test.
func (m *Mock) HTTPClient() *http.Client {
	m.t.Helper()
	client, err := m.client.HTTPClient()
	m.check(err)
	m.t.Cleanup(client.CloseIdleConnections)
	return client
}

// Reset restores the state after start, except for the named parts; see [Client.Reset].
func (m *Mock) Reset(keep ...string) {
	m.t.Helper()
	m.check(m.client.Reset(context.Background(), keep...))
}

// Profile activates a fault profile, such as "flaky-503?rate=0.3".
func (m *Mock) Profile(reference string) {
	m.t.Helper()
	m.check(m.client.Profile(context.Background(), reference))
}

// ProfileWithSeed activates a fault profile with a seed.
func (m *Mock) ProfileWithSeed(reference string, seed uint64) {
	m.t.Helper()
	m.check(m.client.ProfileWithSeed(context.Background(), reference, seed))
}

// Rule adds a fault rule such as {"name": "down", "do": {"respond": {"status": 503}}, "ttl": "30s"}.
func (m *Mock) Rule(rule Object) {
	m.t.Helper()
	m.check(m.client.Rule(context.Background(), rule))
}

// Pushes returns the records that a filter selects, in the order of arrival; a nil filter selects all.
func (m *Mock) Pushes(filter Filter) []Push {
	m.t.Helper()
	pushes, err := m.client.Pushes(context.Background(), filter)
	m.check(err)
	return pushes
}

// Wait waits until a number of pushes match and returns them; see [Client.Wait].
func (m *Mock) Wait(count Count, filter Filter, options ...WaitOption) []Push {
	m.t.Helper()
	pushes, err := m.client.Wait(context.Background(), count, filter, options...)
	m.check(err)
	return pushes
}

// Verify checks expectations such as {"match": {"topic": "com.example.app"}, "count": 1}.
func (m *Mock) Verify(expectations ...Object) {
	m.t.Helper()
	m.check(m.client.Verify(context.Background(), expectations...))
}

// VerifyDocument checks a whole document; see [Client.VerifyDocument].
func (m *Mock) VerifyDocument(document Object) {
	m.t.Helper()
	m.check(m.client.VerifyDocument(context.Background(), document))
}

// AssertNothingLost checks that the last attempt of every push was accepted or permanently rejected.
func (m *Mock) AssertNothingLost() {
	m.t.Helper()
	m.check(m.client.VerifyNothingLost(context.Background()))
}

// Findings returns the mistakes of the provider.
func (m *Mock) Findings() []Finding {
	m.t.Helper()
	findings, err := m.client.Findings(context.Background(), nil)
	m.check(err)
	return findings
}

// Export returns the records that a filter selects as NDJSON.
func (m *Mock) Export(filter Filter) []byte {
	m.t.Helper()
	data, err := m.client.Export(context.Background(), filter)
	m.check(err)
	return data
}

// Import adds the records of an export to the inbox.
func (m *Mock) Import(ndjson io.Reader) {
	m.t.Helper()
	m.check(m.client.Import(context.Background(), ndjson))
}

// Device returns the device token, whose state can be set.
func (m *Mock) Device(token string) Device { return Device{mock: m, token: token} }

// Device is a device token of the server. Every well-formed device token is online until another state is set.
type Device struct {
	mock  *Mock
	token string
}

// Online lets the server accept pushes to the device token.
func (d Device) Online() {
	d.mock.t.Helper()
	d.set(deviceOnline, nil)
}

// Unregistered lets the server respond with 410 Unregistered, with an optional time since when.
func (d Device) Unregistered(since ...time.Time) {
	d.mock.t.Helper()
	d.set(deviceUnregistered, since)
}

// Expired lets the server respond with 410 ExpiredToken, with an optional time since when.
func (d Device) Expired(since ...time.Time) {
	d.mock.t.Helper()
	d.set(deviceExpired, since)
}

func (d Device) set(state string, since []time.Time) {
	d.mock.t.Helper()
	body := Object{"state": state}
	if len(since) > 0 {
		body["since"] = timestamp(since[0])
	}
	d.mock.check(d.mock.client.SetDevice(context.Background(), d.token, body))
}

// Clock returns the clock of the server. It determines the age of provider tokens and the dates of records.
func (m *Mock) Clock() Clock { return Clock{mock: m} }

// Clock is the clock of the server.
type Clock struct{ mock *Mock }

// Freeze stops the clock, optionally at a given time.
func (c Clock) Freeze(at ...time.Time) {
	c.mock.t.Helper()
	var time time.Time
	if len(at) > 0 {
		time = at[0]
	}
	c.mock.check(c.mock.client.FreezeClock(context.Background(), time))
}

// Advance moves the clock, for example by 61 minutes to let provider tokens expire.
func (c Clock) Advance(by time.Duration) {
	c.mock.t.Helper()
	c.mock.check(c.mock.client.AdvanceClock(context.Background(), by))
}

// Real lets the clock follow the machine's clock.
func (c Clock) Real() {
	c.mock.t.Helper()
	c.mock.check(c.mock.client.ResumeClock(context.Background()))
}
