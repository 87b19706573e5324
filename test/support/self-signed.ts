// Certificates for localhost that nothing trusts by default. Node can read X.509 and not write it, so openssl does.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type SelfSigned = { key: string; cert: string }

/** Days below zero make one that has expired. Undefined: there is no openssl on this machine. */
export function selfSigned(days: number): SelfSigned | undefined {
  return inFolder(({ openssl, read }) => {
    openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', 'key.pem')
    openssl('req', '-new', '-key', 'key.pem', '-subj', '/CN=localhost', '-out', 'request.pem')
    openssl('x509', '-req', '-in', 'request.pem', '-signkey', 'key.pem', '-days', String(days), '-out', 'cert.pem')
    return { key: read('key.pem'), cert: read('cert.pem') }
  })
}

/** One that an authority of its own vouches for. Undefined: there is no openssl on this machine. */
export function vouchedFor(): (SelfSigned & { authority: string }) | undefined {
  return inFolder(({ openssl, read, write }) => {
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
    const key = (name: string) => [...curve, '-keyout', `${name}.key`]
    openssl('req', '-x509', ...key('authority'), '-subj', '/CN=Authority', '-days', '2', '-out', 'authority.pem')
    openssl('req', ...key('localhost'), '-subj', '/CN=localhost', '-out', 'request.pem')
    write('extensions', 'subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n')
    const by = ['-CA', 'authority.pem', '-CAkey', 'authority.key', '-CAcreateserial', '-extfile', 'extensions']
    openssl('x509', '-req', '-in', 'request.pem', ...by, '-days', '2', '-out', 'cert.pem')
    return { key: read('localhost.key'), cert: read('cert.pem'), authority: read('authority.pem') }
  })
}

type Folder = {
  openssl(...args: string[]): void
  read(name: string): string
  write(name: string, content: string): void
}

function inFolder<T>(work: (folder: Folder) => T): T | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'usher-tls-'))
  try {
    return work({
      openssl: (...args) => void execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' }),
      read: (name) => readFileSync(join(folder, name), 'utf8'),
      write: (name, content) => writeFileSync(join(folder, name), content),
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  } finally {
    rmSync(folder, { recursive: true })
  }
}
