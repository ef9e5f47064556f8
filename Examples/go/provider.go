// Package provider is a small provider: it sends pushes to APNs, keeps its provider token, and retries failed pushes.
package provider

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand"
	"net/http"
	"strings"
	"sync"
	"time"
)

// tokenLifetime is the time after which a new provider token is signed. APNs accepts a token for an hour.
const tokenLifetime = 50 * time.Minute

// Notification is a notification for one device.
type Notification struct {
	DeviceToken string
	Topic       string
	Payload     string // JSON
}

// Result is the response to the last attempt of a push.
type Result struct {
	Status    int    `json:"-"`
	Reason    string `json:"reason"`
	Timestamp int64  `json:"timestamp"` // of a 410, in milliseconds
}

// Provider sends notifications.
type Provider struct {
	url, keyID, teamID string
	key                *ecdsa.PrivateKey
	client             *http.Client
	FirstPause         time.Duration    // the pause before the first retry
	Attempts           int              // the maximum number of attempts per push
	Now                func() time.Time // the clock

	mutex    sync.Mutex
	token    string // the current provider token
	signedAt time.Time
	devices  map[string]time.Time // registered device tokens, and when they were registered
}

// New returns a provider that signs with a key in the format of Apple's .p8 files.
func New(url string, key []byte, keyID, teamID string, client *http.Client) (*Provider, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("the provider key is not in PEM format")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	signer, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("the provider key is not an EC key: %v", err)
	}
	return &Provider{
		url: url, key: signer, keyID: keyID, teamID: teamID, client: client,
		FirstPause: time.Second, Attempts: 5, Now: time.Now, devices: map[string]time.Time{},
	}, nil
}

// Register adds a device token, or renews its registration.
func (p *Provider) Register(deviceToken string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.devices[deviceToken] = p.Now()
}

// IsRegistered returns whether pushes may be sent to a device token.
func (p *Provider) IsRegistered(deviceToken string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return !p.devices[deviceToken].IsZero()
}

// Run sends the notifications of a queue with a number of workers until the queue is closed. Notifications for device
// tokens that are not registered are skipped.
func (p *Provider) Run(ctx context.Context, queue <-chan Notification, workers int, report func(Notification, Result, error)) {
	var group sync.WaitGroup
	group.Add(workers)
	for i := 0; i < workers; i++ {
		go func() {
			defer group.Done()
			for notification := range queue {
				if p.IsRegistered(notification.DeviceToken) {
					result, err := p.Send(ctx, notification)
					report(notification, result, err)
				}
			}
		}()
	}
	group.Wait()
}

// Send sends a push and retries it on 429, 500 and 503, on lost connections, and on a rejected provider token. It
// returns the last response, or the error of the last attempt. Every attempt has the same apns-id.
func (p *Provider) Send(ctx context.Context, notification Notification) (Result, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return Result{}, err
	}
	apnsID := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	pause := p.FirstPause
	for attempt := 1; ; attempt++ {
		token, err := p.providerToken()
		if err != nil {
			return Result{}, err
		}
		result, err := p.attempt(ctx, notification, apnsID, token)
		p.removeRejected(notification.DeviceToken, result)
		retry := err != nil || result.Status == 429 || result.Status == 500 || result.Status == 503
		if result.Reason == "ExpiredProviderToken" {
			p.discardToken(token)
			retry = true
		}
		if !retry || attempt == p.Attempts {
			return result, err
		}
		// The random part keeps providers that failed together from retrying together.
		select {
		case <-time.After(pause + time.Duration(mathrand.Int63n(int64(pause/5)+1))):
		case <-ctx.Done():
			return result, ctx.Err()
		}
		pause *= 2
	}
}

func (p *Provider) attempt(ctx context.Context, notification Notification, apnsID, token string) (Result, error) {
	request, err := http.NewRequestWithContext(
		ctx, http.MethodPost, p.url+"/3/device/"+notification.DeviceToken, strings.NewReader(notification.Payload))
	if err != nil {
		return Result{}, err
	}
	request.Header.Set("authorization", "bearer "+token)
	request.Header.Set("apns-id", apnsID)
	request.Header.Set("apns-topic", notification.Topic)
	request.Header.Set("apns-push-type", "alert")
	response, err := p.client.Do(request)
	if err != nil {
		return Result{}, err
	}
	defer response.Body.Close()
	result := Result{Status: response.StatusCode}
	text, err := io.ReadAll(response.Body)
	_ = json.Unmarshal(text, &result) // a body that is not JSON leaves the reason empty
	return result, err
}

// removeRejected removes a device token that APNs rejects, unless it was registered again after the time in a 410.
func (p *Provider) removeRejected(deviceToken string, result Result) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	gone := result.Status == 410 && !p.devices[deviceToken].After(time.UnixMilli(result.Timestamp))
	if gone || result.Reason == "BadDeviceToken" {
		delete(p.devices, deviceToken)
	}
}

// providerToken returns the current provider token (a JWT signed with ES256), signed again before it expires.
func (p *Provider) providerToken() (string, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.Now()
	if p.token != "" && now.Sub(p.signedAt) < tokenLifetime {
		return p.token, nil
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(fmt.Sprintf(`{"alg":"ES256","kid":%q}`, p.keyID))) + "." +
		encode([]byte(fmt.Sprintf(`{"iss":%q,"iat":%d}`, p.teamID, now.Unix())))
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, p.key, digest[:])
	if err != nil {
		return "", fmt.Errorf("cannot sign the provider token: %w", err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	p.token, p.signedAt = signed+"."+encode(signature), now
	return p.token, nil
}

// discardToken removes a rejected provider token, unless it was already replaced. The new token is used on a new
// connection, because APNs may reject every request of a connection on which it has rejected a token.
func (p *Provider) discardToken(rejected string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.token == rejected {
		p.token = ""
		p.client.CloseIdleConnections()
	}
}
