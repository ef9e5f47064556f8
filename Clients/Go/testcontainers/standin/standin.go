// Package testcontainers is a stand-in for Testcontainers and its engine: what the module uses of it. The command of a
// container runs as a process of this machine.
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
	"time"

	"github.com/testcontainers/testcontainers-go/wait"
)

type ContainerRequest struct {
	Image        string
	ExposedPorts []string
	Cmd          []string
	WaitingFor   *wait.HTTPStrategy
}

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
	folder, err := os.MkdirTemp("", "engine-")
	if err != nil {
		return nil, err
	}
	arguments := request.Cmd
	if arguments == nil {
		arguments = []string{"serve"}
	}
	portFile := filepath.Join(folder, "ports.json")
	command := exec.Command(os.Getenv("APNS_MOCK_BINARY"), append(arguments, "--apns", "127.0.0.1:0", "--admin",
		"127.0.0.1:0", "--certs", filepath.Join(folder, "certs"), "--port-file", portFile)...)
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
	response, err := http.Get("http://127.0.0.1:" + container.ports[request.WaitingFor.Port].Port() + request.WaitingFor.Path)
	if err == nil {
		response.Body.Close()
	}
	return container, err
}

func (p *process) Host(context.Context) (string, error) { return "127.0.0.1", nil }

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
