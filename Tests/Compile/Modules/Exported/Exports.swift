// SPDX-License-Identifier: Apache-2.0

// The one file of a module that mentions RunLoopKit.
@_exported import RunLoopKit
