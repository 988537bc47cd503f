import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'

/** The counts on one last line, and every skipped test by name: what did not run is not what passed. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]) {
    const tests = modules.flatMap((module) => [...module.children.allTests()])
    const passed = tests.filter((test) => test.result().state === 'passed').length
    const skipped = tests.filter((test) => test.result().state === 'skipped')
    // A file that does not load, a hook that throws and an error that nothing caught have no test to fail.
    const places = modules.flatMap((module) => [module, ...module.children.allSuites()])
    const beside = places.flatMap((place) => place.errors()).length + unhandledErrors.length
    const failed = tests.length - passed - skipped.length + beside
    for (const test of skipped)
      console.log(`skipped: ${test.module.relativeModuleId} > ${test.fullName}: ${reason(test)}`)
    if (process.env.CI && skipped.length > 0) {
      console.log('In CI nothing may be skipped.')
      process.exitCode = 1
    }
    console.log(`${passed} passed, ${failed} failed, ${skipped.length} skipped`)
  }
}

function reason(test: TestCase): string {
  const result = test.result()
  return (result.state === 'skipped' && result.note) || 'no reason given'
}
