package apnsmock

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %q", part, err)
		}
	}
}

// program writes an executable file and selects it as the apns-mock program.
func program(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "apns-mock")
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("APNS_MOCK_BINARY", path)
	return path
}

func TestMissingProgram(t *testing.T) {
	t.Setenv("APNS_MOCK_BINARY", filepath.Join(t.TempDir(), "absent"))
	_, err := Launch(context.Background())
	wantError(t, err, "APNS_MOCK_BINARY is ", "which is not a file", "unset it")

	t.Setenv("APNS_MOCK_BINARY", t.TempDir())
	_, err = Launch(context.Background())
	wantError(t, err, "which is not a file")

	t.Setenv("APNS_MOCK_BINARY", "")
	t.Setenv("PATH", t.TempDir())
	_, err = Launch(context.Background())
	wantError(t, err, "apns-mock was not found", "set APNS_MOCK_BINARY")
}

func TestProgramInPath(t *testing.T) {
	path := program(t, "")
	t.Setenv("APNS_MOCK_BINARY", "")
	t.Setenv("PATH", filepath.Dir(path))
	if found, err := findProgram(); err != nil || found != path {
		t.Errorf("found %q, error %v", found, err)
	}
}

func TestProgramOfOtherArchitecture(t *testing.T) {
	path := program(t, "\x7fELF\x02\x01\x01\x00 of another architecture")
	_, err := Launch(context.Background())
	wantError(t, err, "cannot run "+path, "exec format error", "set APNS_MOCK_BINARY")
}

func TestProgramThatExits(t *testing.T) {
	program(t, "#!/bin/sh\necho 'error: flag is unknown' >&2\nexit 2\n")
	_, err := Launch(context.Background())
	wantError(t, err, "exited with status 2 while starting because its configuration is not valid", "error: flag is unknown")
}

func TestProgramThatIsNeverReady(t *testing.T) {
	program(t, "#!/bin/sh\necho starting >&2\ncat\n")
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := Launch(ctx)
	wantError(t, err, "was not ready in time", "starting")
}

func TestProgramThatLeavesAnotherProgram(t *testing.T) {
	// The background program inherits standard error and outlives its parent.
	program(t, "#!/bin/sh\nsleep 5 &\necho failed >&2\nexit 1\n")
	start := time.Now()
	_, err := Launch(context.Background())
	wantError(t, err, "exited with status 1", "failed")
	if took := time.Since(start); took > 4*time.Second {
		t.Errorf("the error came after %v", took)
	}
}

func TestPortTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, err = Launch(context.Background(), "--apns", listener.Addr().String())
	wantError(t, err, "exited with status 6 while starting because a port is in use")
}

func TestInvalidArgument(t *testing.T) {
	_, err := Launch(context.Background(), "--profile", "flaky-530")
	wantError(t, err, "exited with status 2", "flaky-530")
}

func TestServerKilledInMidTest(t *testing.T) {
	client, err := Launch(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Stop()
	pid := client.process.command.Process.Pid
	waiting := make(chan error)
	go func() {
		_, err := client.Wait(context.Background(), AtLeast(1), nil, Within(time.Minute))
		waiting <- err
	}()
	if err := client.process.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wanted := fmt.Sprintf("the apns-mock server (pid %d) exited with status 137", pid)
	wantError(t, <-waiting, wanted)
	wantError(t, client.Reset(context.Background()), wanted)
}

func TestSharedServerIsReplacedAfterItsDeath(t *testing.T) {
	first := &fakeTest{name: "TestFirst"}
	first.run(func() {
		process := Shared(first).Client().process
		_ = process.command.Process.Kill()
		<-process.done
	})
	if len(Shared(t).Pushes(nil)) != 0 {
		t.Error("the new server has pushes")
	}
}

func TestServerEndsWithThisProcess(t *testing.T) {
	if os.Getenv("APNSMOCK_TEST_LAUNCH") != "" {
		client, err := Launch(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("pid", client.process.command.Process.Pid, filepath.Dir(client.Settings().CA))
		_ = os.Stdout.Sync()
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {}
	}
	child := exec.Command(os.Args[0], "-test.run", "^TestServerEndsWithThisProcess$")
	child.Env = append(os.Environ(), "APNSMOCK_TEST_LAUNCH=1")
	output, _ := child.Output()
	var pid int
	var folder string
	if _, err := fmt.Sscanf(string(output), "pid %d %s", &pid, &folder); err != nil {
		t.Fatalf("output %q: %v", output, err)
	}
	defer os.RemoveAll(folder)
	deadline := time.Now().Add(10 * time.Second)
	// The server removes its port file when it ends.
	for {
		if _, err := os.Stat(filepath.Join(folder, "ports.json")); os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server (pid %d) still runs", pid)
		}
		time.Sleep(pollInterval)
	}
}

func TestIncompatibleVersion(t *testing.T) {
	for version, compatible := range map[string]bool{
		Version: true, "0.1.99": true, "0.2.0": false, "1.1.0": false, "": false, "01": false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"version": %q, "addresses": {"apns": [{"host": "::1", "port": 1}]}}`, version)
		}))
		t.Setenv("APNS_MOCK_ADMIN", server.URL)
		t.Setenv("APNS_MOCK_PORT_FILE", "")
		client, err := FromEnvironment(context.Background())
		server.Close()
		if compatible {
			if err != nil || client.Settings().URL != "https://[::1]:1" {
				t.Errorf("%s: %v, %v", version, client, err)
			}
			continue
		}
		wantError(t, err, "has version "+version, "install apns-mock 0.1.x")
	}
}

func TestFromEnvironment(t *testing.T) {
	for _, name := range []string{"APNS_MOCK_ADMIN", "APNS_MOCK_PORT_FILE", "APNS_MOCK_APNS"} {
		t.Setenv(name, "")
	}
	_, err := FromEnvironment(context.Background())
	wantError(t, err, "neither APNS_MOCK_ADMIN nor APNS_MOCK_PORT_FILE is set", "apns-mock exec")

	mock := Start(t, WithArguments("--admin-token", "secret"))
	t.Setenv("APNS_MOCK_PORT_FILE", mock.Client().process.portFilePath())
	client, err := FromEnvironment(context.Background())
	if err != nil || client.Settings() != mock.Settings() {
		t.Errorf("settings %v, error %v", client, err)
	}
	client.Stop()
	mock.Reset()

	t.Setenv("APNS_MOCK_PORT_FILE", "")
	t.Setenv("APNS_MOCK_ADMIN", mock.Client().AdminURL())
	_, err = FromEnvironment(context.Background())
	wantError(t, err, "responded with 401")

	t.Setenv("APNS_MOCK_ADMIN", "127.0.0.1")
	_, err = FromEnvironment(context.Background())
	wantError(t, err, `APNS_MOCK_ADMIN is "127.0.0.1": set it to HOST:PORT`)

	t.Setenv("APNS_MOCK_PORT_FILE", filepath.Join(t.TempDir(), "absent"))
	_, err = FromEnvironment(context.Background())
	wantError(t, err, "APNS_MOCK_PORT_FILE")
}

func TestTailKeepsLastLines(t *testing.T) {
	text := &tail{limit: 200}
	for i := 0; i < 100; i++ {
		fmt.Fprintf(text, "line %d\n", i)
	}
	quoted := text.quoted()
	if !strings.HasSuffix(quoted, "line 99") || strings.Count(quoted, "\n") != 10 {
		t.Errorf("quoted %q", quoted)
	}
}
