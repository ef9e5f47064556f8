// Package apnsmockcontainer runs apns-mock in a container with Testcontainers.
//
//	container, err := apnsmockcontainer.Run(ctx, "apns-mock")
//	testcontainers.CleanupContainer(t, container)
//	if err != nil {
//		t.Fatal(err)
//	}
//	client, err := container.Client(ctx, t.TempDir())
package apnsmockcontainer

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	apnsmock "github.com/apns-mock/apns-mock/Clients/Go"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

const (
	apnsPort  = "2197/tcp"
	adminPort = "8197/tcp"
	keyID     = "MOCKKEY001"
	teamID    = "MOCKTEAM01"
)

// Container is a container that runs `apns-mock serve`.
type Container struct {
	testcontainers.Container
}

// Run starts a container of an image, such as that of the repository's Dockerfile, and waits until the server is ready.
func Run(ctx context.Context, image string, options ...testcontainers.ContainerCustomizer) (*Container, error) {
	host, err := engineHost(ctx)
	if err != nil {
		return nil, err
	}
	request := testcontainers.GenericContainerRequest{
		ContainerRequest: testcontainers.ContainerRequest{
			Image:        image,
			ExposedPorts: []string{apnsPort, adminPort},
			Env:          map[string]string{},
			WaitingFor:   wait.ForHTTP("/readyz").WithPort(adminPort),
		},
		Started: true,
	}
	for _, option := range options {
		if err := option.Customize(&request); err != nil {
			return nil, err
		}
	}
	addHost(&request, "--allow-host", "APNS_MOCK_ALLOW_HOST", host)
	addHost(&request, "--san", "APNS_MOCK_SAN", host)
	container, err := testcontainers.GenericContainer(ctx, request)
	if container == nil {
		return nil, err
	}
	// With an error, the container is for the caller to terminate.
	return &Container{container}, err
}

// addHost adds the host of the engine to those that a flag or a variable has: the server's certificate and its admin API
// must have the name.
func addHost(request *testcontainers.GenericContainerRequest, flag, variable, host string) {
	for _, argument := range request.Cmd {
		// A flag overrides the variable.
		if argument == flag || strings.HasPrefix(argument, flag+"=") {
			request.Cmd = append(append([]string{}, request.Cmd...), flag, host)
			return
		}
	}
	if given := request.Env[variable]; given != "" {
		host = given + "," + host
	}
	request.Env[variable] = host
}

// engineHost returns the name by which this machine reaches the engine.
func engineHost(ctx context.Context) (string, error) {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", err
	}
	defer provider.Close()
	return provider.DaemonHost(ctx)
}

// WithArguments adds flags of `apns-mock serve`, such as "--rules", "strict".
func WithArguments(arguments ...string) testcontainers.CustomizeRequestOption {
	return func(request *testcontainers.GenericContainerRequest) error {
		request.Cmd = append([]string{"serve"}, arguments...)
		return nil
	}
}

// Client returns a client of the server. It copies the certificate and the key that a provider needs to a folder, which
// must exist as long as the client's settings are used.
func (c *Container) Client(ctx context.Context, folder string) (*apnsmock.Client, error) {
	variables := map[string]string{"APNS_MOCK_KEY_ID": keyID, "APNS_MOCK_TEAM_ID": teamID}
	host, err := c.Host(ctx)
	if err != nil {
		return nil, err
	}
	admin, err := c.MappedPort(ctx, adminPort)
	if err != nil {
		return nil, err
	}
	apns, err := c.MappedPort(ctx, apnsPort)
	if err != nil {
		return nil, err
	}
	variables["APNS_MOCK_ADMIN"] = net.JoinHostPort(host, admin.Port())
	variables["APNS_MOCK_APNS"] = net.JoinHostPort(host, apns.Port())
	for variable, name := range map[string]string{"APNS_MOCK_CA": "ca.pem", "APNS_MOCK_KEY": "AuthKey_" + keyID + ".p8"} {
		variables[variable] = filepath.Join(folder, name)
		if err := c.copy(ctx, "/certs/"+name, variables[variable]); err != nil {
			return nil, err
		}
	}
	return apnsmock.Connect(ctx, func(variable string) string { return variables[variable] })
}

func (c *Container) copy(ctx context.Context, from, to string) error {
	file, err := c.CopyFileFromContainer(ctx, from)
	if err != nil {
		return fmt.Errorf("cannot copy %s from the container: %w", from, err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("cannot copy %s from the container: %w", from, err)
	}
	return os.WriteFile(to, content, 0o600)
}
