import APNSMockDevices
import Testing

struct DeviceDescriptionTests {
  @Test(arguments: ["anna", "a-1", "Phone_2", "g", "facade0x", String(repeating: "x", count: 64)])
  func validIDs(id: String) {
    #expect(DeviceDescription.isID(id))
  }

  @Test(arguments: ["", "1a", "-a", "an na", "ännä", "face", "C0FFEE", String(repeating: "x", count: 65)])
  func invalidIDs(id: String) {
    #expect(!DeviceDescription.isID(id))
  }
}
