// Package testcontainers is a stand-in for Testcontainers and its engine: what the module uses of it. The command of a
// container runs as a process of this machine, and the engine is reached by an address that no certificate has by default.
package testcontainers

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/testcontainers/testcontainers-go/wait"
)

type ContainerRequest struct {
	Image        string
	ExposedPorts []string
	Env          map[string]string
	Cmd          []string
	WaitingFor   *wait.HTTPStrategy
}

type DockerProvider struct{}

func NewDockerProvider() (*DockerProvider, error) { return &DockerProvider{}, nil }

func (*DockerProvider) DaemonHost(context.Context) (string, error) {
	if runtime.GOOS == "linux" {
		return "127.0.0.2", nil
	}
	return "127.0.0.1", nil
}

func (*DockerProvider) Close() error { return nil }

type GenericContainerRequest struct {
	ContainerRequest
	Started bool
}

type ContainerCustomizer interface {
	Customize(*GenericContainerRequest) error
}

type CustomizeRequestOption func(*GenericContainerRequest) error

func (o CustomizeRequestOption) Customize(request *GenericContainerRequest) error { return o(request) }

type TerminateOption func()

type Container interface {
	Host(context.Context) (string, error)
	MappedPort(context.Context, wait.Port) (wait.Port, error)
	CopyFileFromContainer(context.Context, string) (io.ReadCloser, error)
	Terminate(context.Context, ...TerminateOption) error
}

type process struct {
	command *exec.Cmd
	folder  string
	ports   map[wait.Port]wait.Port
}

func GenericContainer(ctx context.Context, request GenericContainerRequest) (Container, error) {
	host, _ := new(DockerProvider).DaemonHost(ctx)
	folder, err := os.MkdirTemp("", "engine-")
	if err != nil {
		return nil, err
	}
	arguments := request.Cmd
	if arguments == nil {
		arguments = []string{"serve"}
	}
	portFile := filepath.Join(folder, "ports.json")
	command := exec.Command(os.Getenv("APNS_MOCK_BINARY"), append(arguments, "--apns", "0.0.0.0:0", "--admin",
		"0.0.0.0:0", "--certs", filepath.Join(folder, "certs"), "--port-file", portFile)...)
	command.Env = os.Environ()
	for name, value := range request.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	container := &process{command: command, folder: folder}
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()
	for {
		select {
		case err := <-exited:
			return container, fmt.Errorf("the container exited: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		content, err := os.ReadFile(portFile)
		if err != nil {
			continue
		}
		type endpoint struct{ Port int }
		var bound struct {
			APNs  []endpoint
			Admin endpoint
		}
		if err := json.Unmarshal(content, &bound); err != nil {
			return container, err
		}
		container.ports = map[wait.Port]wait.Port{
			"2197/tcp": wait.Port(fmt.Sprintf("%d/tcp", bound.APNs[0].Port)),
			"8197/tcp": wait.Port(fmt.Sprintf("%d/tcp", bound.Admin.Port)),
		}
		break
	}
	response, err := http.Get("http://" + host + ":" + container.ports[request.WaitingFor.Port].Port() + request.WaitingFor.Path)
	if err == nil {
		response.Body.Close()
	}
	return container, err
}

func (p *process) Host(ctx context.Context) (string, error) {
	return new(DockerProvider).DaemonHost(ctx)
}

func (p *process) MappedPort(_ context.Context, port wait.Port) (wait.Port, error) {
	return p.ports[port], nil
}

func (p *process) CopyFileFromContainer(_ context.Context, path string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(p.folder, path))
}

func (p *process) Terminate(context.Context, ...TerminateOption) error {
	_ = p.command.Process.Kill()
	return os.RemoveAll(p.folder)
}
