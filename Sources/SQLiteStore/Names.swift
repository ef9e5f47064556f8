package import APNSMockInbox

/// The record of a push. GRDB has a type of the same name.
package typealias PushRecord = Record
