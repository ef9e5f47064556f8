package apnsmock

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// ciVariables has for each label of a run the variables of the usual CI systems.
var ciVariables = map[string][]string{
	"commit": {"GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT", "BUILDKITE_COMMIT", "CIRCLE_SHA1", "BUILD_SOURCEVERSION"},
	"branch": {"GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "GIT_BRANCH", "BUILDKITE_BRANCH", "CIRCLE_BRANCH"},
	"build":  {"GITHUB_RUN_ID", "CI_PIPELINE_ID", "BUILD_NUMBER", "BUILDKITE_BUILD_NUMBER", "CIRCLE_BUILD_NUM"},
	"job":    {"GITHUB_JOB", "CI_JOB_NAME", "JOB_NAME", "CIRCLE_JOB"},
}

// run records the tests of a process on a server: which pushes belong to which test, and how it ended. Under `apns-mock
// exec` it is the run that exec has started and ends. A failure to record never fails a test.
type run struct {
	client *Client
	id     string
	isOwn  bool
}

func startRun(client *Client) *run {
	if id := os.Getenv("APNS_MOCK_RUN"); id != "" && client.process == nil {
		return &run{client: client, id: id}
	}
	labels := Object{}
	for label, names := range ciVariables {
		for _, name := range names {
			if value := os.Getenv(name); value != "" {
				labels[label] = value
				break
			}
		}
	}
	var started struct{ ID string }
	name := strings.Join(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), " ")
	body := Object{"name": name, "labels": labels}
	if client.process != nil {
		var status struct{ Seed json.Number }
		if err := client.call(context.Background(), request{method: http.MethodGet, path: "/api/v1/status"}, &status); err == nil {
			body["command"] = command(status.Seed.String())
		}
	}
	r := &run{client: client, isOwn: true}
	r.send(http.MethodPost, "", body, &started)
	r.id = started.ID
	return r
}

// command returns the command that repeats the tests of this process with a seed.
func command(seed string) string {
	words := []string{"APNS_MOCK_SEED=" + seed, "go", "test"}
	for _, argument := range os.Args[1:] {
		name := strings.TrimPrefix(argument, "-test.")
		// go test adds these to every run.
		isAdded := strings.HasPrefix(name, "paniconexit0") || strings.HasPrefix(name, "testlogfile") || strings.HasPrefix(name, "timeout=")
		if name != argument && !isAdded {
			words = append(words, "'-"+strings.ReplaceAll(name, "'", `'\''`)+"'")
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasSuffix(info.Path, ".test") {
		words = append(words, strings.TrimSuffix(info.Path, ".test"))
	}
	return strings.Join(words, " ")
}

// startTest returns the number of the test, or 0 if it could not be recorded.
func (r *run) startTest(name, scope string) int {
	body := Object{"name": name}
	if scope != "" {
		body["scope"] = scope
	}
	var test struct{ Number int }
	r.send(http.MethodPost, "/"+url.PathEscape(r.id)+"/tests", body, &test)
	return test.Number
}

func (r *run) endTest(number int, outcome, message string) {
	if number == 0 {
		return
	}
	body := Object{"outcome": outcome}
	if message != "" {
		body["message"] = message
	}
	r.send(http.MethodPatch, "/"+url.PathEscape(r.id)+"/tests/"+strconv.Itoa(number), body, nil)
}

// pause ends the run until the next test, because without [Run] no test knows that it is the last one.
func (r *run) pause() {
	if r.isOwn {
		r.send(http.MethodPatch, "/"+url.PathEscape(r.id), Object{"ended": true}, nil)
	}
}

// end ends the run, unless exec will do it, and writes its report to the folder that APNS_MOCK_REPORTS names.
func (r *run) end() {
	if !r.isOwn || r.id == "" {
		return
	}
	r.isOwn = false
	r.send(http.MethodPatch, "/"+url.PathEscape(r.id), Object{"ended": true}, nil)
	folder := os.Getenv("APNS_MOCK_REPORTS")
	if folder == "" {
		return
	}
	report, err := r.client.send(context.Background(), request{method: http.MethodGet, path: "/api/v1/runs/" + url.PathEscape(r.id) + "/report"})
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err == nil {
		name := fmt.Sprintf("go-%d-%d.html", os.Getpid(), time.Now().UnixNano())
		err = os.WriteFile(filepath.Join(folder, name), report, 0o600)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "apns-mock: the report could not be written: %v\n", err)
	}
}

// send ignores errors: the test itself fails if the server has exited.
func (r *run) send(method, path string, body Object, result any) {
	if r.id == "" && path != "" {
		return
	}
	_ = r.client.call(context.Background(), request{method: method, path: "/api/v1/runs" + path, body: body}, result)
}
