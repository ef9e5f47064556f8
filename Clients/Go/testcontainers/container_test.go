package apnsmockcontainer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"testing"

	"github.com/testcontainers/testcontainers-go"
)

// No container is run: the stand-in for the engine runs the program.
func TestContainerIsStartedUsedAndRemoved(t *testing.T) {
	ctx := context.Background()
	container, err := Run(ctx, "apns-mock", WithArguments("--rules", "strict", "--seed", "7", "--allow-host=mock.test"),
		testcontainers.CustomizeRequestOption(func(request *testcontainers.GenericContainerRequest) error {
			request.Env["APNS_MOCK_SAN"] = "push.test"
			return nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.Client(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	settings := client.Settings()
	key, err := os.ReadFile(settings.Key)
	if err != nil || !strings.Contains(string(key), "PRIVATE KEY") || settings.KeyID != keyID {
		t.Fatalf("the key of the settings is %q, %v", key, err)
	}
	authority, err := os.ReadFile(settings.CA)
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority)
	for _, name := range []string{"", "push.test"} {
		configuration := &tls.Config{RootCAs: authorities, ServerName: name}
		connection, err := tls.Dial("tcp", strings.TrimPrefix(settings.URL, "https://"), configuration)
		if err != nil {
			t.Fatal(err)
		}
		connection.Close()
	}
	report, err := client.Report(ctx)
	if err != nil || !strings.Contains(report, "seed 7, profile healthy, 0 pushes") {
		t.Fatalf("the report is %q, %v", report, err)
	}
	if err := container.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Report(ctx); err == nil {
		t.Fatal("the server still responds")
	}
}

func TestContainerThatExitsIsAnError(t *testing.T) {
	container, err := Run(context.Background(), "apns-mock", WithArguments("--profile", "flaky-504"))
	if err == nil {
		t.Fatal("there is no error")
	}
	if container == nil {
		t.Fatal("the container cannot be removed")
	}
}
