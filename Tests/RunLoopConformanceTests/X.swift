import Testing
@Suite struct X {}
