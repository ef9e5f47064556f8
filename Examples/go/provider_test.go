package provider

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	apnsmock "github.com/apns-mock/apns-mock/Clients/Go"
)

const topic = apnsmock.Topic

func TestMain(m *testing.M) { os.Exit(apnsmock.Run(m)) }

// newProvider returns a provider for the server, with short pauses.
func newProvider(t *testing.T, mock *apnsmock.Mock) *Provider {
	t.Helper()
	settings := mock.Settings()
	key, err := os.ReadFile(settings.Key)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := New(settings.URL, key, settings.KeyID, settings.TeamID, mock.HTTPClient())
	if err != nil {
		t.Fatal(err)
	}
	provider.FirstPause = 120 * time.Millisecond
	return provider
}

// register registers device tokens. They are the same in each run, because the draws of a profile depend on them.
func register(provider *Provider, count int) []string {
	var devices []string
	for i := 1; i <= count; i++ {
		device := fmt.Sprintf("%064x", i)
		provider.Register(device)
		devices = append(devices, device)
	}
	return devices
}

// sendAll sends a push to each device token with a number of workers and returns the number of responses with each status. A lost push has the
// status 0.
func sendAll(t *testing.T, provider *Provider, devices []string, workers int, title string) map[int]int {
	t.Helper()
	queue := make(chan Notification)
	go func() {
		defer close(queue)
		for _, device := range devices {
			payload := fmt.Sprintf(`{"aps":{"alert":{"title":%q}}}`, title)
			queue <- Notification{DeviceToken: device, Topic: topic, Payload: payload}
		}
	}()
	results := make(chan Result, len(devices))
	provider.Run(context.Background(), queue, workers, func(_ Notification, result Result, err error) {
		if err != nil {
			t.Errorf("a push was lost: %v", err)
		}
		results <- result
	})
	close(results)
	statuses := map[int]int{}
	for result := range results {
		statuses[result.Status]++
	}
	return statuses
}

func wantStatuses(t *testing.T, got map[int]int, want map[int]int) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("statuses %v, not %v", got, want)
	}
}

// wantNoFindings checks the findings of a test with several workers. It ignores excess-streams: on a new connection
// net/http may open streams that were waiting for it after it has acknowledged a lower limit.
func wantNoFindings(t *testing.T, mock *apnsmock.Mock) {
	t.Helper()
	for _, finding := range mock.Findings() {
		if finding.Name != "excess-streams" {
			t.Errorf("finding %s", finding)
		}
	}
}

func TestHealthy(t *testing.T) {
	mock := apnsmock.Shared(t, apnsmock.WithProfile("healthy"), apnsmock.FailOnFindings())
	provider := newProvider(t, mock)
	devices := register(provider, 10)

	wantStatuses(t, sendAll(t, provider, devices, 1, "Welcome"), map[int]int{200: 10})

	mock.VerifyDocument(apnsmock.Object{
		"expect":    []apnsmock.Object{{"match": apnsmock.Object{"payload": apnsmock.Object{"/aps/alert/title": "Welcome"}}, "count": 10, "outcome": "accepted"}},
		"no_others": true,
	})
	mock.AssertNothingLost()
}

func TestUnavailableServiceIsRetriedWithBackoff(t *testing.T) {
	mock := apnsmock.Shared(t, apnsmock.WithProfile("flaky-503?rate=0.3&streak=2"), apnsmock.WithSeed(7))
	provider := newProvider(t, mock)

	wantStatuses(t, sendAll(t, provider, register(provider, 20), 4, "News"), map[int]int{200: 20})

	retries := apnsmock.Object{"min": 2, "max": 2, "min_first_delay": "100ms", "growing": true, "finally": "accepted"}
	mock.Verify(apnsmock.Object{"name": "retry policy", "match": apnsmock.Object{"rule": "flaky"}, "retries": retries})
	mock.AssertNothingLost()
	wantNoFindings(t, mock)
}

func TestUnregisteredDevicesAreRemoved(t *testing.T) {
	mock := apnsmock.Shared(t, apnsmock.WithProfile("unregistered-410?rate=1"), apnsmock.FailOnFindings())
	provider := newProvider(t, mock)
	// They were registered before the time in the response, which is 24 hours ago.
	provider.Now = func() time.Time { return time.Now().Add(-25 * time.Hour) }
	devices := register(provider, 5)
	provider.Now = time.Now

	wantStatuses(t, sendAll(t, provider, devices, 1, "One"), map[int]int{410: 5})
	wantStatuses(t, sendAll(t, provider, devices, 1, "Two"), map[int]int{})

	mock.Verify(apnsmock.Object{"match": apnsmock.Object{"reason": "Unregistered"}, "count": 5})
	mock.AssertNothingLost()
}

func TestDeviceThatRegisteredAgainIsKept(t *testing.T) {
	mock := apnsmock.Shared(t, apnsmock.WithProfile("unregistered-410?rate=1"))
	provider := newProvider(t, mock)
	devices := register(provider, 1)

	sendAll(t, provider, devices, 1, "One")

	if !provider.IsRegistered(devices[0]) {
		t.Error("a device token was removed that was registered after the time in the response")
	}
}

func TestBadDeviceTokenIsRemoved(t *testing.T) {
	mock := apnsmock.Shared(t, apnsmock.FailOnFindings())
	provider := newProvider(t, mock)
	provider.Register("not-a-token")

	wantStatuses(t, sendAll(t, provider, []string{"not-a-token"}, 1, "One"), map[int]int{400: 1})

	if provider.IsRegistered("not-a-token") {
		t.Error("the device token is still registered")
	}
	mock.Verify(apnsmock.Object{"match": apnsmock.Object{"reason": "BadDeviceToken"}, "count": 1})
}

func TestExpiredProviderTokenIsReplaced(t *testing.T) {
	mock := apnsmock.Shared(t, apnsmock.WithProfile("expired-jwt-403?max_age=30s"), apnsmock.FailOnFindings())
	provider := newProvider(t, mock)
	devices := register(provider, 1)
	sendAll(t, provider, devices, 1, "One")

	mock.Clock().Advance(31 * time.Second)
	provider.Now = func() time.Time { return time.Now().Add(31 * time.Second) }
	wantStatuses(t, sendAll(t, provider, devices, 1, "Two"), map[int]int{200: 1})

	mock.Verify(apnsmock.Object{"match": apnsmock.Object{"reason": "ExpiredProviderToken"}, "retries": apnsmock.Object{"max": 1, "finally": "accepted"}})
	mock.AssertNothingLost()
}

func TestProviderTokenIsRenewedBeforeItExpires(t *testing.T) {
	mock := apnsmock.Shared(t, apnsmock.FailOnFindings())
	provider := newProvider(t, mock)
	devices := register(provider, 3)
	sendAll(t, provider, devices, 1, "One")

	mock.Clock().Advance(51 * time.Minute)
	provider.Now = func() time.Time { return time.Now().Add(51 * time.Minute) }
	sendAll(t, provider, devices, 1, "Two")

	tokens := map[string]bool{}
	for _, push := range mock.Pushes(apnsmock.Filter{"status": 200}) {
		tokens[push.Header("authorization")] = true
	}
	if len(tokens) != 2 {
		t.Errorf("%d provider tokens instead of 2", len(tokens))
	}
}

func TestPushesAfterGoAwayAreSentAgain(t *testing.T) {
	mock := apnsmock.Shared(t, apnsmock.WithProfile("goaway-storm?streams=5"))
	provider := newProvider(t, mock)
	devices := register(provider, 20)

	wantStatuses(t, sendAll(t, provider, devices, 4, "Sale"), map[int]int{200: 20})

	mock.Verify(
		apnsmock.Object{"name": "GOAWAY was sent", "match": apnsmock.Object{"rule": "goaway"}, "count": apnsmock.Object{"at_least": 2}},
		// AssertNothingLost looks at the last record of each push. Here that is not always the accepted one: the server
		// can read a push from the new connection before it reads the first attempt from the old one.
		apnsmock.Object{"name": "each push once", "outcome": "accepted", "count": 20},
	)
	wantNoFindings(t, mock)
}
