package apnsmock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
	pollInterval = 10 * time.Millisecond
	// outputPatience is the time to read the last output of a server that has exited.
	outputPatience = 500 * time.Millisecond
	maxStderrBytes = 8 << 10
)

// portFile is the content of the file that the server writes when it is ready.
type portFile struct {
	APNs       []address `json:"apns"`
	Admin      address   `json:"admin"`
	CA         string    `json:"ca"`
	Key        string    `json:"key"`
	KeyID      string    `json:"key_id"`
	TeamID     string    `json:"team_id"`
	AdminToken string    `json:"admin_token"`
}

type address struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

func readPortFile(path string) (portFile, error) {
	var ports portFile
	data, err := os.ReadFile(path)
	if err != nil {
		return ports, err
	}
	if err := json.Unmarshal(data, &ports); err != nil {
		return ports, fmt.Errorf("the port file %s is not valid: %w", path, err)
	}
	return ports, nil
}

// findProgram returns the path of the apns-mock program: the value of APNS_MOCK_BINARY, or else the first apns-mock in
// PATH.
func findProgram() (string, error) {
	if path := os.Getenv("APNS_MOCK_BINARY"); path != "" {
		info, err := os.Stat(path)
		if err != nil || info.IsDir() {
			return "", fmt.Errorf("APNS_MOCK_BINARY is %s, which is not a file: set it to the path of the apns-mock program, or unset it to search PATH", path)
		}
		return filepath.Abs(path)
	}
	path, err := exec.LookPath("apns-mock")
	if err != nil {
		return "", errors.New("apns-mock was not found: APNS_MOCK_BINARY is not set and PATH has no apns-mock; install the program, or set APNS_MOCK_BINARY to its path")
	}
	return path, nil
}

// process is a running apns-mock server, the child of this process.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	stderr  *tail
	folder  string
	// done is closed when the process has exited.
	done chan struct{}
	stop sync.Once
}

// startProcess starts the program with free ports and waits until it is ready.
func startProcess(ctx context.Context, arguments []string) (*process, portFile, error) {
	program, err := findProgram()
	if err != nil {
		return nil, portFile{}, err
	}
	folder, err := os.MkdirTemp("", "apnsmock-")
	if err != nil {
		return nil, portFile{}, fmt.Errorf("cannot create a temporary folder for certificates: %w", err)
	}
	p, err := spawn(program, folder, arguments)
	if err != nil {
		os.RemoveAll(folder)
		return nil, portFile{}, err
	}
	ports, err := p.waitUntilReady(ctx)
	if err != nil {
		p.terminate()
		return nil, portFile{}, err
	}
	return p, ports, nil
}

func spawn(program, folder string, arguments []string) (*process, error) {
	p := &process{stderr: &tail{limit: maxStderrBytes}, folder: folder, done: make(chan struct{})}
	p.command = exec.Command(program, append([]string{
		"serve", "--apns", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--certs", folder,
		"--port-file", p.portFilePath(), "--exit-on-stdin-close",
	}, arguments...)...)
	// A pipe of our own: with a writer that is no file, Wait would also wait for programs that the server has started.
	output, input, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("cannot create a pipe for %s: %w", program, err)
	}
	p.command.Stderr = input
	// The server exits when this pipe closes, so it cannot outlive this process.
	stdin, err := p.command.StdinPipe()
	if err != nil {
		input.Close()
		output.Close()
		return nil, fmt.Errorf("cannot create a pipe for %s: %w", program, err)
	}
	p.stdin = stdin
	err = p.command.Start()
	input.Close()
	if err != nil {
		stdin.Close()
		output.Close()
		return nil, fmt.Errorf("cannot run %s: %w; install an apns-mock program for %s/%s, or set APNS_MOCK_BINARY to its path", program, err, runtime.GOOS, runtime.GOARCH)
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		defer output.Close()
		_, _ = io.Copy(p.stderr, output)
	}()
	go func() {
		defer close(p.done)
		// The exit status is in ProcessState.
		_ = p.command.Wait()
		select {
		case <-copied:
		case <-time.After(outputPatience):
		}
	}()
	return p, nil
}

func (p *process) portFilePath() string { return filepath.Join(p.folder, "ports.json") }

// waitUntilReady returns the content of the port file, which the server renames into place when it is ready.
func (p *process) waitUntilReady(ctx context.Context) (portFile, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		ports, err := readPortFile(p.portFilePath())
		if !errors.Is(err, os.ErrNotExist) {
			return ports, err
		}
		select {
		case <-ticker.C:
		case <-p.done:
			return portFile{}, p.startError()
		case <-ctx.Done():
			return portFile{}, fmt.Errorf("the apns-mock server (pid %d) was not ready in time (%w)%s", p.command.Process.Pid, ctx.Err(), p.stderr.quoted())
		}
	}
}

func (p *process) startError() error {
	cause := ""
	switch p.status() {
	case 2:
		cause = " because its configuration is not valid"
	case 6:
		cause = " because a port is in use"
	}
	return fmt.Errorf("the apns-mock server (pid %d) exited with status %d while starting%s%s", p.command.Process.Pid, p.status(), cause, p.stderr.quoted())
}

// exitError returns the error of calls to a server that has exited, or nil while it runs. After a failed request it
// waits briefly, because the connection of a process ends before its exit status is known.
func (p *process) exitError(patience time.Duration) error {
	if !p.exited(patience) {
		return nil
	}
	return fmt.Errorf("the apns-mock server (pid %d) exited with status %d%s", p.command.Process.Pid, p.status(), p.stderr.quoted())
}

// exited returns whether the process has exited, or exits within a time.
func (p *process) exited(within time.Duration) bool {
	select {
	case <-p.done:
		return true
	default:
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// status returns the exit status as a shell counts it: 128 plus the number of the signal that ended the process.
func (p *process) status() int {
	state := p.command.ProcessState
	if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal())
	}
	return state.ExitCode()
}

// terminate ends the server and removes its folder. Further calls do nothing.
func (p *process) terminate() {
	p.stop.Do(func() {
		p.stdin.Close()
		if !p.exited(stopTimeout) {
			_ = p.command.Process.Kill()
			<-p.done
		}
		os.RemoveAll(p.folder)
	})
}

// tail is a writer that keeps the last bytes written to it.
type tail struct {
	limit int
	mutex sync.Mutex
	bytes []byte
}

func (t *tail) Write(data []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.bytes = append(t.bytes, data...)
	if excess := len(t.bytes) - t.limit; excess > 0 {
		t.bytes = append([]byte(nil), t.bytes[excess:]...)
	}
	return len(data), nil
}

// quoted returns the last ten lines as the end of an error message.
func (t *tail) quoted() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	text := string(bytes.TrimSpace(t.bytes))
	if text == "" {
		return "; it wrote nothing to standard error"
	}
	lines := strings.Split(text, "\n")
	if len(lines) > 10 {
		lines = lines[len(lines)-10:]
	}
	return "; its last output:\n" + strings.Join(lines, "\n")
}
