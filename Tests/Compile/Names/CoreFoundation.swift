// SPDX-License-Identifier: Apache-2.0

// Core Foundation's functions on Linux that RunLoopKit replaces with another function. The sections are compiled with
// Foundation alone and together with RunLoopKit.
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
