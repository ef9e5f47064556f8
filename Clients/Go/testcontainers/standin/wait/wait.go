// Package wait is a stand-in for the package of Testcontainers.
package wait

import "strings"

// Port is a port with its protocol, as nat.Port of the library.
type Port string

func (p Port) Port() string { return strings.Split(string(p), "/")[0] }

type HTTPStrategy struct {
	Path string
	Port Port
}

func ForHTTP(path string) *HTTPStrategy { return &HTTPStrategy{Path: path} }

func (s *HTTPStrategy) WithPort(port Port) *HTTPStrategy {
	s.Port = port
	return s
}
