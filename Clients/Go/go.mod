module apnsmock

go 1.19
