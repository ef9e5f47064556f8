package apnsmock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

func TestPushIsRecorded(t *testing.T) {
	mock := Shared(t)
	device := DeviceToken()

	if status := send(t, mock, device, Topic, "Welcome"); status != 200 {
		t.Fatalf("status %d", status)
	}

	pushes := mock.Pushes(Filter{"device_token": device, "payload./aps/alert/title": "Welcome"})
	if len(pushes) != 1 {
		t.Fatalf("%d pushes", len(pushes))
	}
	push := pushes[0]
	if !push.Accepted || push.Outcome != "accepted" || push.Served.Status != 200 || push.Attempt != 1 ||
		push.APNs.Topic != Topic || push.Header("APNS-Push-Type") != "alert" || push.Fault != nil || push.ReceivedAt.IsZero() {
		t.Errorf("record %s", push.Raw)
	}
	mock.Verify(Object{"match": Object{"device_token": device}, "count": 1, "outcome": "accepted"})
	mock.AssertNothingLost()
}

func TestSharedServerIsResetBetweenTests(t *testing.T) {
	first := Shared(t)
	send(t, first, DeviceToken(), Topic, "One")
	t.Run("subtest", func(t *testing.T) {
		second := Shared(t)
		if second.Settings() != first.Settings() {
			t.Errorf("two servers: %v and %v", first.Settings(), second.Settings())
		}
		if pushes := second.Pushes(nil); len(pushes) != 0 {
			t.Errorf("%d pushes after the reset", len(pushes))
		}
	})
}

func TestProfileAndSeedDetermineResponses(t *testing.T) {
	mock := Shared(t, WithProfile("flaky-503?rate=1"), WithSeed(7))
	if status := send(t, mock, DeviceToken(), Topic, "One"); status != 503 {
		t.Fatalf("status %d", status)
	}
	push := mock.Pushes(Filter{"rule": "flaky", "status": 503})[0]
	if push.Fault == nil || push.Fault.Rule != "flaky" || push.Served.Reason != "ServiceUnavailable" {
		t.Errorf("record %s", push.Raw)
	}
	mock.Profile("healthy")
	if status := send(t, mock, DeviceToken(), Topic, "Two"); status != 200 {
		t.Errorf("status %d", status)
	}
	if err := mock.Client().VerifyNothingLost(context.Background()); err == nil {
		t.Error("a push without a retry after 503 is not reported as lost")
	}
}

func TestRuleInjectsFault(t *testing.T) {
	mock := Shared(t)
	mock.Rule(Object{"name": "down", "do": Object{"respond": Object{"status": 500, "reason": "InternalServerError"}}, "ttl": "30s"})
	if status := send(t, mock, DeviceToken(), Topic, "One"); status != 500 {
		t.Errorf("status %d", status)
	}
}

func TestDeviceStates(t *testing.T) {
	mock := Shared(t)
	device := DeviceToken()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	mock.Device(device).Unregistered(since)
	if status := send(t, mock, device, Topic, "One"); status != 410 {
		t.Errorf("status %d", status)
	}
	mock.Device(device).Expired()
	send(t, mock, device, Topic, "Two")
	mock.Device(device).Online()
	if status := send(t, mock, device, Topic, "Three"); status != 200 {
		t.Errorf("status %d", status)
	}
	reasons := ""
	for _, push := range mock.Pushes(Filter{"device_token": device}) {
		reasons += push.Served.Reason + " "
	}
	if reasons != "Unregistered ExpiredToken  " {
		t.Errorf("reasons %q", reasons)
	}
}

func TestClockExpiresProviderTokens(t *testing.T) {
	mock := Shared(t)
	mock.Clock().Freeze()
	mock.Clock().Advance(61 * time.Minute)
	if status := send(t, mock, DeviceToken(), Topic, "One"); status != 403 {
		t.Errorf("status %d", status)
	}
	mock.Clock().Freeze(time.Now())
	mock.Clock().Real()
	if status := send(t, mock, DeviceToken(), Topic, "Two"); status != 200 {
		t.Errorf("status %d", status)
	}
}

func TestWaitReportsNearestPush(t *testing.T) {
	mock := Shared(t)
	device := DeviceToken()
	send(t, mock, device, Topic, "One")
	ctx := context.Background()

	mock.Wait(Exactly(1), Filter{"device_token": device}, Settle(50*time.Millisecond))
	mock.Wait(Exactly(0), Filter{"status": ">=400"}, Settle(50*time.Millisecond))

	_, err := mock.Client().Wait(ctx, AtLeast(1), Filter{"device_token": device, "status": 410}, Within(50*time.Millisecond))
	var failure *WaitError
	if !errors.As(err, &failure) || len(failure.Nearest) != 1 {
		t.Fatalf("error %v", err)
	}
	if !strings.Contains(err.Error(), "differs in status") {
		t.Errorf("error %q", err)
	}
	if _, err := mock.Client().Wait(ctx, AtLeast(0), nil); err == nil {
		t.Error("AtLeast(0) is not an error")
	}
}

func TestVerifyReportsText(t *testing.T) {
	mock := Shared(t)
	send(t, mock, DeviceToken(), Topic, "Welcome ")
	err := mock.Client().Verify(context.Background(), Object{"name": "welcome push", "match": Object{"payload": Object{"/aps/alert/title": "Welcome"}}})
	var failure *VerifyError
	if !errors.As(err, &failure) || !strings.Contains(failure.Text, "✗ welcome push") || !strings.Contains(failure.Text, "trailing space") {
		t.Errorf("error %v", err)
	}
}

func TestMisspeltNamesAreErrors(t *testing.T) {
	mock := Shared(t)
	ctx := context.Background()
	client := mock.Client()
	_, unknownField := client.Pushes(ctx, Filter{"device_tokn": "ab"})
	_, unknownReason := client.Findings(ctx, Filter{"reason": "Unregisterd"})
	for name, err := range map[string]error{
		"field": unknownField, "reason": unknownReason,
		"profile": client.Profile(ctx, "flaky-530"),
		"rule":    client.Rule(ctx, Object{"doo": 1}),
		"part":    client.Reset(ctx, "profil"),
		"device":  client.SetDevice(ctx, "not/hex", Object{"state": "online"}),
		"verify":  client.VerifyDocument(ctx, Object{"expct": []Object{}}),
	} {
		var problem *APIError
		if !errors.As(err, &problem) || problem.Status < 400 || problem.Hint == "" {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestFilterValues(t *testing.T) {
	client := &Client{}
	type named string
	values, err := client.values(Filter{"status": []int{410, 429}, "accepted": true, "topic": named("a b"), "reason": []any{"A", "B"}})
	if err != nil || values.Encode() != "accepted=true&reason=A&reason=B&status=410&status=429&topic=a+b" {
		t.Errorf("values %s, error %v", values.Encode(), err)
	}
	for _, value := range []any{nil, Object{}, []string{}, []any{nil}, struct{}{}} {
		if _, err := client.values(Filter{"status": value}); err == nil {
			t.Errorf("%#v is not an error", value)
		}
	}
}

func TestPushesReadsAllPages(t *testing.T) {
	mock := Shared(t)
	send(t, mock, DeviceToken(), Topic, "One")
	record := mock.Pushes(nil)[0]
	var ndjson bytes.Buffer
	for seq := 1; seq <= 1001; seq++ {
		ndjson.WriteString(strings.Replace(string(record.Raw), fmt.Sprintf(`"seq":%d,`, record.Seq), fmt.Sprintf(`"seq":%d,`, seq), 1))
		ndjson.WriteByte('\n')
	}
	mock.Reset()
	mock.Import(&ndjson)
	if pushes := mock.Pushes(nil); len(pushes) != 1001 {
		t.Errorf("%d pushes", len(pushes))
	}
}

func TestExportCanBeImported(t *testing.T) {
	mock := Shared(t)
	device := DeviceToken()
	send(t, mock, device, Topic, "One")
	exported := mock.Export(Filter{"device_token": device})
	mock.Reset()
	mock.Import(bytes.NewReader(exported))
	if pushes := mock.Pushes(Filter{"device_token": device}); len(pushes) != 1 {
		t.Errorf("%d pushes", len(pushes))
	}
}

func TestScopeHidesOtherPushes(t *testing.T) {
	mock := Shared(t)
	first, second := mock.Scoped("topic:com.acme.one"), mock.Scoped("topic:com.acme.two")
	send(t, mock, DeviceToken(), "com.acme.one", "One")
	send(t, mock, DeviceToken(), "com.acme.two", "Two")

	if pushes := first.Pushes(nil); len(pushes) != 1 || pushes[0].APNs.Topic != "com.acme.one" {
		t.Errorf("pushes %v", pushes)
	}
	first.Verify(Object{"count": 1})
	first.Wait(Exactly(1), nil)
	first.Reset()
	if len(first.Pushes(nil)) != 0 || len(second.Pushes(nil)) != 1 {
		t.Error("a scoped reset removed other pushes")
	}
	second.AssertNothingLost()
}

func TestStartPassesArguments(t *testing.T) {
	mock := Start(t, WithArguments("--rules", "strict", "--admin-token", "secret"))
	if status := send(t, mock, DeviceToken(), "a topic", "One"); status != 400 {
		t.Errorf("status %d", status)
	}
	if !strings.HasPrefix(mock.Client().AdminURL(), "http://127.0.0.1:") {
		t.Errorf("admin URL %s", mock.Client().AdminURL())
	}
}

// fakeTest is a test whose failure is an observation of another test.
type fakeTest struct {
	testing.TB
	name     string
	failed   bool
	output   strings.Builder
	cleanups []func()
}

func (f *fakeTest) Helper()          {}
func (f *fakeTest) Name() string     { return f.name }
func (f *fakeTest) Failed() bool     { return f.failed }
func (f *fakeTest) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fakeTest) Log(a ...any)     { fmt.Fprintln(&f.output, a...) }
func (f *fakeTest) Errorf(format string, a ...any) {
	f.failed = true
	fmt.Fprintf(&f.output, format+"\n", a...)
}
func (f *fakeTest) Fatal(a ...any) {
	f.failed = true
	f.Log(a...)
	runtime.Goexit()
}

// run runs a function as a test with cleanups and returns the output.
func (f *fakeTest) run(body func()) string {
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		defer func() {
			for i := len(f.cleanups) - 1; i >= 0; i-- {
				f.cleanups[i]()
			}
		}()
		body()
	}()
	<-finished
	return f.output.String()
}

func TestFailedTestPrintsInbox(t *testing.T) {
	device := DeviceToken()
	fake := &fakeTest{name: t.Name() + "/fake"}
	output := fake.run(func() {
		mock := Start(fake, WithProfile("flaky-503?rate=1"), WithSeed(7))
		send(t, mock, device, Topic, "One")
		mock.Verify(Object{"match": Object{"topic": Topic}, "outcome": "accepted"})
		t.Error("the test continues after a failed verification")
	})
	for _, wanted := range []string{
		"✗ expectation 1", "seed 7, profile flaky-503?rate=1", "pushes: 1",
		device[:4] + "…" + device[62:] + " com.example.app attempt 1: 503 ServiceUnavailable by rule flaky",
	} {
		if !strings.Contains(output, wanted) {
			t.Errorf("%q is missing in:\n%s", wanted, output)
		}
	}
	if strings.Contains(output, device) {
		t.Error("the report contains a whole device token")
	}
}

func TestPassedTestPrintsNothing(t *testing.T) {
	fake := &fakeTest{name: t.Name() + "/fake"}
	output := fake.run(func() { send(t, Shared(fake), DeviceToken(), Topic, "One") })
	if fake.failed || output != "" {
		t.Errorf("output %q", output)
	}
}

func TestFindingsFailTest(t *testing.T) {
	fake := &fakeTest{name: t.Name() + "/fake"}
	output := fake.run(func() {
		mock := Shared(fake, FailOnFindings())
		device := DeviceToken()
		mock.Device(device).Unregistered()
		send(t, mock, device, Topic, "One")
		send(t, mock, device, Topic, "One")
	})
	if !fake.failed || !strings.Contains(output, "finding retried-410 (1)") {
		t.Errorf("failed %v, output %q", fake.failed, output)
	}
}

func TestParallelTestsNeedScopes(t *testing.T) {
	first := &fakeTest{name: "TestOne"}
	second := &fakeTest{name: "TestTwo"}
	third := &fakeTest{name: "TestThree"}
	first.run(func() {
		Shared(first, WithScope("topic:com.acme.one"))
		Shared(third, WithScope("topic:com.acme.three"))
		output := second.run(func() { Shared(second) })
		if !second.failed || !strings.Contains(output, "in use by TestOne") {
			t.Errorf("failed %v, output %q", second.failed, output)
		}
	})
	third.run(func() {})
	if first.failed || third.failed {
		t.Errorf("output %q %q", first.output.String(), third.output.String())
	}
	output := first.run(func() { Shared(first, WithScope("topic:a"), WithSeed(1)) })
	if !strings.Contains(output, "WithScope cannot be combined") {
		t.Errorf("output %q", output)
	}
}

func TestStopRemovesFolder(t *testing.T) {
	client, err := Launch(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(client.Settings().CA)
	client.Stop()
	client.Stop()
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s remains: %v", folder, err)
	}
	if status := client.process.status(); status != 0 {
		t.Errorf("the server exited with status %d", status)
	}
	_, err = client.ActiveProfile(context.Background())
	if err == nil || !strings.Contains(err.Error(), "exited with status 0") {
		t.Errorf("error %v", err)
	}
}
