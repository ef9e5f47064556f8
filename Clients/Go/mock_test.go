package apnsmock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(processVariable) == withoutRun {
		os.Exit(m.Run())
	}
	os.Exit(Run(m))
}

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

func TestWaitWithoutRequest(t *testing.T) {
	for _, count := range []Count{AtLeast(0), AtLeast(-1), Exactly(-1)} {
		if _, err := (&Client{}).Wait(context.Background(), count, nil); err == nil || !strings.Contains(err.Error(), "AtLeast(1)") {
			t.Errorf("%v: error %v", count, err)
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
func (f *fakeTest) Skipped() bool    { return false }
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
		"✗ expectation 1", "apns-mock: seed 7, profile flaky-503?rate=1, 1 push\nnot accepted:\n  1  ",
		device[:4] + "…" + device[62:] + "  com.example.app  attempt 1  503 ServiceUnavailable  rule flaky",
	} {
		if !strings.Contains(output, wanted) {
			t.Errorf("%q is missing in:\n%s", wanted, output)
		}
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
	for _, test := range []struct {
		option Option
		output string
	}{
		{FailOnFindings(), "finding retried-410, push "},
		{FailOnFindings("hot-retry", "retried-410"), "finding retried-410, push "},
		{FailOnFindings("hot-retry"), ""},
		{FailOnRejected(), "rejected with 410 Unregistered, push "},
		{FailOnFindings("hot-retri"), "Did you mean hot-retry?"},
	} {
		fake := &fakeTest{name: t.Name() + "/fake"}
		output := fake.run(func() {
			mock := Shared(fake, test.option)
			device := DeviceToken()
			mock.Device(device).Unregistered()
			send(t, mock, device, Topic, "One")
			send(t, mock, device, Topic, "One")
		})
		if fake.failed != (test.output != "") || !strings.Contains(output, test.output) {
			t.Errorf("wanted %q, failed %v, output %q", test.output, fake.failed, output)
		}
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

func TestTheTestIsInTheReport(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("APNS_MOCK_REPORTS", folder)
	t.Run("inner", func(t *testing.T) {
		mock := Start(t)
		send(t, mock, DeviceToken(), Topic, "One")
		fake := &fakeTest{name: t.Name() + "/fake"}
		fake.run(func() {
			failing := &Mock{client: mock.client, t: fake, failure: &failure{}}
			number := mock.client.run.startTest(fake.name, "")
			fake.Cleanup(func() { failing.finish(Checks{}, number) })
			failing.Scoped("topic:com.example.app").Verify(Object{"match": Object{"topic": Topic}, "count": 2})
		})
	})
	files, err := filepath.Glob(filepath.Join(folder, "go-*.html"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v %v", files, err)
	}
	report, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(report), `"name":"TestTheTestIsInTheReport/inner","outcome":"passed"`) {
		t.Error("the report does not have the test")
	}
	if !strings.Contains(string(report), `"command":"APNS_MOCK_SEED=`) || !strings.Contains(string(report), " go test ") {
		t.Error("the report does not have the command that repeats the tests")
	}
	if !strings.Contains(string(report), `"outcome":"failed"`) || !strings.Contains(string(report), "expected exactly 2") {
		t.Error("the report does not have the cause of the failure")
	}
}

// processVariable is set in a process that runs one of the tests below, whose failure is an observation of another test.
const processVariable, withoutRun = "GO_CLIENT_TEST_PROCESS", "without Run"

// runProcess runs tests in a process of their own under `apns-mock exec`; it returns the lines of the export that are runs
// and tests, and those that are pushes.
func runProcess(t *testing.T, value, pattern string) (runs, pushes []map[string]any) {
	t.Helper()
	export := filepath.Join(t.TempDir(), "run.ndjson")
	command := exec.Command(os.Getenv("APNS_MOCK_BINARY"), "exec", "--export", export, "--", os.Args[0], "-test.run", pattern)
	command.Env = append(os.Environ(), processVariable+"="+value)
	output, _ := command.CombinedOutput()
	data, err := os.ReadFile(export)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch object["kind"] {
		case "run", "test":
			runs = append(runs, object)
		case "push":
			pushes = append(pushes, object)
		}
	}
	return runs, pushes
}

func TestProcessEnds(t *testing.T) {
	if os.Getenv(processVariable) == "" {
		t.Skip("a test of another process")
	}
	for name, body := range map[string]func(*testing.T){
		"panic":    func(*testing.T) { panic("boom") },
		"nil":      func(*testing.T) { var mock *Mock; _ = mock.client },
		"Goexit":   func(*testing.T) { runtime.Goexit() },
		"subtest":  func(t *testing.T) { t.Run("inner", func(*testing.T) { panic("boom") }) },
		"recovers": func(*testing.T) { defer func() { _ = recover() }(); panic("boom") },
		"skips":    func(t *testing.T) { t.Skip() },
		"fails":    func(t *testing.T) { t.FailNow() },
	} {
		if os.Getenv(processVariable) == name {
			Start(t)
			body(t)
		}
	}
}

func TestEndsOfTestsAreRecorded(t *testing.T) {
	for value, wanted := range map[string]string{
		"panic": "failed: the test panicked at mock_test.go:", "nil": "failed: the test panicked at mock_test.go:",
		"Goexit": "failed: the test called runtime.Goexit", "subtest": "failed: ", "recovers": "passed: ", "skips": "skipped: ",
		"fails": "failed: the test failed outside",
	} {
		found := ""
		runs, _ := runProcess(t, value, "^TestProcessEnds$")
		for _, line := range runs {
			if line["kind"] == "test" && line["name"] == "TestProcessEnds" {
				message, _ := line["message"].(string)
				found += fmt.Sprintf("%v: %s", line["outcome"], message)
			}
		}
		if !strings.HasPrefix(found, wanted) {
			t.Errorf("%s: wanted %q, found %q", value, wanted, found)
		}
	}
}

func TestProcessOuter(t *testing.T) {
	if os.Getenv(processVariable) == "" {
		t.Skip("a test of another process")
	}
	mock := Shared(t)
	send(t, mock, DeviceToken(), Topic, "One")
	t.Run("inner", func(t *testing.T) {
		mock := Shared(t)
		send(t, mock, DeviceToken(), Topic, "Two")
		mock.Verify(Object{"match": Object{"test": t.Name()}, "count": 1})
	})
	send(t, mock, DeviceToken(), Topic, "Three")
}

func TestProcessLast(t *testing.T) {
	if os.Getenv(processVariable) == "" {
		t.Skip("a test of another process")
	}
	mock := Shared(t)
	send(t, mock, DeviceToken(), Topic, "Four")
	mock.Verify(Object{"match": Object{"test": t.Name()}, "count": 1})
}

func TestRunEndsWithItsLastTest(t *testing.T) {
	for _, value := range []string{withoutRun, "with Run"} {
		runs, pushes := runProcess(t, value, "^TestProcess(Outer|Last)$")
		found, run := "", ""
		for _, line := range runs {
			if line["kind"] == "test" {
				found += fmt.Sprintf("%v; ", line["outcome"])
			} else if strings.HasPrefix(line["name"].(string), filepath.Base(os.Args[0])) {
				run = fmt.Sprintf("%v %v; ", line["state"], line["outcome"])
			}
		}
		found = run + found
		for _, push := range pushes {
			found += fmt.Sprintf("%v ", push["test"])
		}
		wanted := "ended passed; passed; passed; passed; TestProcessOuter TestProcessOuter/inner TestProcessOuter TestProcessLast "
		if found != wanted {
			t.Errorf("%s: wanted %q, found %q", value, wanted, found)
		}
	}
}
