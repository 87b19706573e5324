// Bundles the tarball of `npm pack`: `usher listen` and `usher trigger` as plain JavaScript, since Node runs no TypeScript below node_modules,
// with a manifest without dependencies. postpack packs that folder in place of the checkout, whose own manifest nothing changes.

import { defineConfig } from 'rolldown'
import packageJson from '../package.json' with { type: 'json' }

const { name, version, license, type } = packageJson
const manifest = { name, version, license, type, engines: { node: '>=20.15' }, bin: { usher: 'usher.js' } }

// biome-ignore lint/style/noDefaultExport: rolldown reads the default export.
export default defineConfig({
  input: 'src/cli/packed.ts',
  platform: 'node',
  output: {
    dir: 'node_modules/.cache/usher/package',
    entryFileNames: 'usher.js',
    codeSplitting: false,
    cleanDir: true,
  },
  plugins: [
    {
      name: 'manifest',
      generateBundle() {
        this.emitFile({ type: 'asset', fileName: 'package.json', source: JSON.stringify(manifest, null, 2) })
      },
    },
  ],
})
