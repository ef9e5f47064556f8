// Package apnsmock starts an apns-mock server in Go tests and reads what it received.
//
// apns-mock is a local server that replaces Apple's push service: it validates pushes as APNs does, injects faults, and
// records every attempt.
//
//	func TestWelcomePush(t *testing.T) {
//		mock := apnsmock.Start(t)
//		settings := mock.Settings()
//		// Configure your provider with settings.URL, .CA, .Key, .KeyID, .TeamID, .Topic, and let it send.
//		pushes := mock.Wait(apnsmock.AtLeast(1), apnsmock.Filter{"topic": settings.Topic})
//		if pushes[0].Served.Status != 200 {
//			t.Errorf("status %d", pushes[0].Served.Status)
//		}
//	}
//
// The methods of a [Mock] fail the test when they fail. The methods of a [Client] return errors; use it where there is
// no test, for example in TestMain, or in other goroutines.
package apnsmock

// Version is the version of this client. It works with servers of the same major version, and below 1.0 of the same
// minor version.
const Version = "0.1.0"
