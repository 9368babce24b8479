// SPDX-License-Identifier: Apache-2.0

// The umbrella module that programs import together with Foundation. Exporting the modules makes everything visible;
// exporting each type by name makes it take precedence over a type of the same name in Foundation.
//
// No other file of this module imports one of these types by name: that import would not export it, and the compiler
// keeps only one of two imports of a name. Files that also import Foundation write `RunLoopCore.Port`.
@_exported public import RunLoopCore
@_exported public import class RunLoopCore.Port
@_exported public import class RunLoopCore.RunLoop
@_exported public import class RunLoopCore.Timer
@_exported public import RunLoopFoundation
@_exported public import func RunLoopFoundation.CFRunLoopStop
@_exported public import class RunLoopFoundation.NotificationQueue
@_exported public import class RunLoopFoundation.PortMessage
@_exported public import protocol RunLoopFoundation.PortDelegate
@_exported public import RunLoopThreads
@_exported public import class RunLoopThreads.Thread
