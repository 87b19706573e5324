import { LRUCache } from 'lru-cache'

/**
 * A cache of so many entries, of which the one that is unused for longest goes first. It takes memory as it fills: `max` reserves all of it at
 * once, which was 6 MB and 20 ms of a start.
 */
export const createCache = <Value extends NonNullable<unknown>>(
  size: number,
  options: { ttl?: number; noUpdateTTL?: boolean } = {},
): LRUCache<string, Value> => new LRUCache({ maxSize: size, sizeCalculation: () => 1, ...options })
