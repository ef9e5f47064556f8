module provider

go 1.19

require apnsmock v0.1.0

replace apnsmock => ../../Clients/Go
