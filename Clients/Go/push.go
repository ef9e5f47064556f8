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
	// Run and Test are the run of a test suite and the test to which the push belongs.
	Run  string `json:"run"`
	Test string `json:"test"`
	// Accepted is whether APNs accepted the push, regardless of the response that was sent.
	Accepted bool `json:"accepted"`
	// Decision is what APNs did with the push, and Ending how the attempt ended for the client; Outcome follows from both.
	Decision string `json:"decision"`
	Ending   string `json:"ending"`
	// Outcome is accepted, rejected, response_lost, unanswered, unprocessed, incomplete, malformed, pending or unknown.
	Outcome string `json:"outcome"`
	// Violation is how a malformed request violates HTTP/2.
	Violation string `json:"violation"`
	// Delivery is the last state of the delivery to a registered device.
	Delivery string `json:"delivery"`
	Listener int    `json:"listener"`
	// Kind is push, broadcast or channel; Environment is sandbox or production.
	Kind        string    `json:"kind"`
	Environment string    `json:"environment"`
	ReceivedAt  time.Time `json:"received_at"`
	FinishedAt  time.Time `json:"finished_at"`
	// PushKey is the same for all attempts of a push; Attempt is 1 for the first of them.
	PushKey    string `json:"push_key"`
	Attempt    int    `json:"attempt"`
	Connection struct {
		ID     string `json:"id"`
		Stream int    `json:"stream"`
		Client string `json:"client"`
		SNI    string `json:"sni"`
		TLS    string `json:"tls"`
		// HTTP is h2 or http/1.1.
		HTTP string `json:"http"`
	} `json:"connection"`
	Request struct {
		Method      string `json:"method"`
		Path        string `json:"path"`
		DeviceToken string `json:"device_token"`
		// Headers are names and values in the order of arrival.
		Headers [][2]string `json:"headers"`
		// Payload is the body if it is JSON.
		Payload json.RawMessage `json:"payload"`
		// PayloadError is why Payload is null.
		PayloadError string `json:"payload_error"`
		// Size is the size of the body and its maximum, in bytes.
		Size struct {
			Bytes int `json:"bytes"`
			Limit int `json:"limit"`
		} `json:"size"`
		// Complete is whether the request was received completely.
		Complete bool `json:"complete"`
	} `json:"request"`
	APNs struct {
		ID string `json:"id"`
		// IDOrigin is client or server.
		IDOrigin   string `json:"id_origin"`
		Topic      string `json:"topic"`
		PushType   string `json:"push_type"`
		Priority   int    `json:"priority"`
		Expiration string `json:"expiration"`
		CollapseID string `json:"collapse_id"`
	} `json:"apns"`
	// Auth is how the provider authenticated itself; Kind is token, certificate or none.
	Auth struct {
		Kind      string `json:"kind"`
		TeamID    string `json:"team_id"`
		KeyID     string `json:"key_id"`
		IssuedAt  string `json:"issued_at"`
		AgeMS     int64  `json:"age_ms"`
		Signature string `json:"signature"`
		// Certificate is the certificate of the provider; nil if it presented none.
		Certificate *struct {
			SubjectUID  string   `json:"subject_uid"`
			CommonName  string   `json:"common_name"`
			Fingerprint string   `json:"fingerprint"`
			Topics      []string `json:"topics"`
		} `json:"certificate"`
	} `json:"auth"`
	// Verdict is the response that APNs would give; nil if the request is incomplete.
	Verdict *struct {
		Status int    `json:"status"`
		Reason string `json:"reason"`
		Checks []struct {
			Check  string `json:"check"`
			OK     bool   `json:"ok"`
			Detail string `json:"detail"`
		} `json:"checks"`
	} `json:"verdict"`
	// Fault is the rule that affected the push or ended its connection; nil without a fault.
	Fault *struct {
		Profile string `json:"profile"`
		Rule    string `json:"rule"`
		Action  string `json:"action"`
		// Draw is the number that was drawn, P the probability, Ordinal the number of pushes that the rule has seen.
		Draw    float64 `json:"draw"`
		P       float64 `json:"p"`
		Ordinal int64   `json:"ordinal"`
		// By is the seq of the push for which the rule fired, if it is another one.
		By json.RawMessage `json:"by"`
		// Also are the other rules that contributed.
		Also []struct {
			Rule   string `json:"rule"`
			Action string `json:"action"`
		} `json:"also"`
	} `json:"fault"`
	// Served is the response that was sent.
	Served struct {
		Status int    `json:"status"`
		Reason string `json:"reason"`
		// Reset is the HTTP/2 error code with which the stream was reset.
		Reset string `json:"reset"`
		// GoAway is the GOAWAY frame that was sent; nil for none.
		GoAway *struct {
			Code       string `json:"code"`
			LastStream int    `json:"last_stream"`
			Debug      string `json:"debug"`
		} `json:"goaway"`
		// Closed is fin or reset if the connection was closed.
		Closed string `json:"closed"`
		// LatencyMS is the time from the request to the response in milliseconds.
		LatencyMS float64 `json:"latency_ms"`
	} `json:"served"`
	// Upstream is what the service of --upstream did with the push; nil if the push was not forwarded.
	Upstream *struct {
		Status int    `json:"status"`
		Reason string `json:"reason"`
		APNsID string `json:"apns_id"`
		// Problem is why there is no response.
		Problem    string  `json:"problem"`
		LatencyMS  float64 `json:"latency_ms"`
		Connection int     `json:"connection"`
		// Deviating is whether status or reason differ from those of the verdict.
		Deviating bool `json:"deviating"`
	} `json:"upstream"`
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
