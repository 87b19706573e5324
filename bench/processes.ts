// CPU time and memory of processes, from /proc: on Linux only; elsewhere NaN.

import { readFileSync } from 'node:fs'

/** User and system time of a process in milliseconds. Linux counts hundredths of a second. */
export const cpuMs = (pid: number): number => ticks(pid, [11, 12]) * 10

/** The same with its children, also with those that have ended: of Postgres, whose connections are processes. */
export function cpuWithChildrenMs(pid: number): number {
  try {
    return childrenOf(pid).reduce((sum, child) => sum + (cpuMs(child) || 0), ticks(pid, [11, 12, 13, 14]) * 10)
  } catch {
    return Number.NaN
  }
}

function ticks(pid: number, fields: number[]): number {
  try {
    const all = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return fields.reduce((sum, field) => sum + Number(all[field]), 0)
  } catch {
    return Number.NaN
  }
}

const childrenOf = (pid: number): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)

/** The courier that an Usher runs beside it. */
export const courierOf = (pid: number): number | undefined =>
  childrenOf(pid).find((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('courier-main'))

/** Resident memory in MB. */
export function memoryMb(pid: number): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  } catch {
    return Number.NaN
  }
}

/** CPU time of the processes that Postgres has now, in microseconds, from the scheduler. */
export function backendsCpuUs(pid: number): number {
  try {
    return childrenOf(pid).reduce((sum, child) => sum + backendCpuUs(child), 0)
  } catch {
    return Number.NaN
  }
}

/** The same of one of them. */
export function backendCpuUs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1_000
}
