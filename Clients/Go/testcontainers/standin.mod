// Used by Clients/Go/test: the client of this repository, and a stand-in for Testcontainers.
module github.com/apns-mock/apns-mock/Clients/Go/testcontainers

go 1.19

require (
	github.com/apns-mock/apns-mock/Clients/Go v0.1.0
	github.com/testcontainers/testcontainers-go v0.35.0
)

replace github.com/apns-mock/apns-mock/Clients/Go => ../

replace github.com/testcontainers/testcontainers-go => ./standin
