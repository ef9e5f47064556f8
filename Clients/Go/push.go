package apnsmock

import (
	"encoding/json"
	"strings"
	"time"
)

// Push is a record of the inbox: one attempt to send a push. Members that are null in the record are zero.
type Push struct {
	// Seq is the key of the record, in the order of arrival.
	Seq int64 `json:"seq"`
	// Accepted is whether APNs accepted the push, regardless of the response that was sent.
	Accepted bool `json:"accepted"`
	// Outcome is accepted, rejected, response_lost, unanswered, unprocessed, incomplete, malformed, pending or unknown.
	Outcome    string    `json:"outcome"`
	ReceivedAt time.Time `json:"received_at"`
	FinishedAt time.Time `json:"finished_at"`
	// PushKey is the same for all attempts of a push; Attempt is 1 for the first of them.
	PushKey    string `json:"push_key"`
	Attempt    int    `json:"attempt"`
	Connection struct {
		ID     string `json:"id"`
		Stream int    `json:"stream"`
		TLS    string `json:"tls"`
	} `json:"connection"`
	Request struct {
		Method      string `json:"method"`
		Path        string `json:"path"`
		DeviceToken string `json:"device_token"`
		// Headers are names and values in the order of arrival.
		Headers [][2]string `json:"headers"`
		// Payload is the body if it is JSON.
		Payload json.RawMessage `json:"payload"`
	} `json:"request"`
	APNs struct {
		ID         string `json:"id"`
		Topic      string `json:"topic"`
		PushType   string `json:"push_type"`
		Priority   int    `json:"priority"`
		CollapseID string `json:"collapse_id"`
	} `json:"apns"`
	// Fault is the rule that affected the push or ended its connection; nil without a fault.
	Fault *struct {
		Profile string `json:"profile"`
		Rule    string `json:"rule"`
		Action  string `json:"action"`
	} `json:"fault"`
	// Served is the response that was sent.
	Served struct {
		Status int    `json:"status"`
		Reason string `json:"reason"`
		// Reset is the HTTP/2 error code with which the stream was reset.
		Reset string `json:"reset"`
		// Closed is fin or reset if the connection was closed.
		Closed string `json:"closed"`
	} `json:"served"`
	// Findings are the names of the findings about the provider.
	Findings []string `json:"findings"`
	// Raw is the whole record.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a record and keeps its text in Raw.
func (p *Push) UnmarshalJSON(data []byte) error {
	type members Push
	if err := json.Unmarshal(data, (*members)(p)); err != nil {
		return err
	}
	p.Raw = append(json.RawMessage(nil), data...)
	return nil
}

// Header returns the first value of a header field of the request, or "".
func (p Push) Header(name string) string {
	for _, header := range p.Request.Headers {
		if strings.EqualFold(header[0], name) {
			return header[1]
		}
	}
	return ""
}
