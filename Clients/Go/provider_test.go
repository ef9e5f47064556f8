package apnsmock

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"testing"
	"time"
)

// send sends one push as a provider does, and returns the status of the response.
func send(t *testing.T, mock *Mock, device, topic, title string) int {
	t.Helper()
	body, err := json.Marshal(Object{"aps": Object{"alert": Object{"title": title}}})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, mock.Settings().URL+"/3/device/"+device, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("authorization", "bearer "+providerToken(t, mock.Settings()))
	request.Header.Set("apns-topic", topic)
	request.Header.Set("apns-push-type", "alert")
	response, err := mock.HTTPClient().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.ProtoMajor != 2 {
		t.Errorf("the response came over %s, not HTTP/2", response.Proto)
	}
	return response.StatusCode
}

// providerToken returns a JWT signed with ES256.
func providerToken(t *testing.T, settings Settings) string {
	t.Helper()
	text, err := os.ReadFile(settings.Key)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	part := func(value any) string {
		data, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	signed := part(Object{"alg": "ES256", "kid": settings.KeyID}) + "." + part(Object{"iss": settings.TeamID, "iat": time.Now().Unix()})
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key.(*ecdsa.PrivateKey), digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}
