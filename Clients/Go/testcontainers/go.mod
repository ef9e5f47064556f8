module github.com/apns-mock/apns-mock/Clients/Go/testcontainers

go 1.19

require (
	github.com/apns-mock/apns-mock/Clients/Go v0.1.0
	github.com/testcontainers/testcontainers-go v0.35.0
)
