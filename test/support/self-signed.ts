// Certificates that nobody trusts unless told to, for localhost. Node can read X.509 and not write it, so openssl does.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type SelfSigned = { key: string; cert: string }

/** Days below zero make one that has expired. Undefined: there is no openssl on this machine. */
export function selfSigned(days: number): SelfSigned | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'usher-tls-'))
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  try {
    openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', 'key.pem')
    openssl('req', '-new', '-key', 'key.pem', '-subj', '/CN=localhost', '-out', 'request.pem')
    openssl('x509', '-req', '-in', 'request.pem', '-signkey', 'key.pem', '-days', String(days), '-out', 'cert.pem')
    return { key: readFileSync(join(folder, 'key.pem'), 'utf8'), cert: readFileSync(join(folder, 'cert.pem'), 'utf8') }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  } finally {
    rmSync(folder, { recursive: true })
  }
}
