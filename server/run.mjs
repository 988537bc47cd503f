// The one launcher behind the npm scripts: `node run.mjs main`, `node run.mjs cli/main …`.
// Plain JavaScript, because an old Node cannot even parse what it would have to complain about.
const [major] = process.versions.node.split('.').map(Number)
if (major < 24) {
  const how =
    process.platform === 'linux'
      ? '"npm ci" brings it along and "npm start" uses it: run both, with optional dependencies'
      : 'Install it from nodejs.org'
  console.error(`Carillon needs Node 24 or newer; this is ${process.version}. ${how}.`)
  process.exit(1)
}
// Before anything runs on them: names that cannot be looked up hold threads for seconds, and others need some too.
process.env.UV_THREADPOOL_SIZE ??= '16'
const [, , entry, ...rest] = process.argv
process.argv.splice(2, process.argv.length - 2, ...rest)
await import(`./src/${entry}.ts`)
