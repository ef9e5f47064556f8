module github.com/apns-mock/apns-mock/Clients/Go

go 1.19
