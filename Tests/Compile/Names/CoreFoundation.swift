// SPDX-License-Identifier: Apache-2.0

// What Core Foundation has on Linux that another function takes the place of. The sections are compiled with Foundation
// alone and with RunLoopKit beside it.
import CoreFoundation
import Foundation

#if canImport(RunLoopKit)
  import RunLoopKit
#endif

// MARK: Core Foundation: a stop
func stopMain() {
  CFRunLoopStop(CFRunLoopGetMain())
  let loop: CFRunLoop? = CFRunLoopGetCurrent()
  CFRunLoopStop(loop)
}

// MARK: Core Foundation: a stop by its full name
func stopByFullName() { CoreFoundation.CFRunLoopStop(CFRunLoopGetMain()) }
