module provider

go 1.19

require github.com/apns-mock/apns-mock/Clients/Go v0.1.0

replace github.com/apns-mock/apns-mock/Clients/Go => ../../Clients/Go
