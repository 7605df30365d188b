/** A uuid for a filter that has no kind yet. A filter of uuids reads text as a uuid. */
export class Uuid {
  constructor(text: string)
  readonly bytes: Uint8Array
}

/**
 * An element. Numbers beyond 2^53 are refused: use a bigint or text. A filter of integers or uuids
 * converts text; every other mismatch is an error.
 */
export type Element = number | bigint | string | Uuid | Uint8Array | readonly [number | bigint, number | bigint]

export type Kind = 'bigint' | 'text' | 'uuid' | 'bytea' | 'pair'

export type FavErrorCode =
  | 'MALFORMED' | 'NO_MEMORY' | 'TOO_LARGE' | 'TOO_MANY_SLICES' | 'MISMATCH' | 'UNDATED'
  | 'OTHER_KIND' | 'BAD_ELEMENT' | 'BAD_PARAMETER' | 'INTERRUPTED'

export class FavError extends Error {
  readonly code: FavErrorCode
}

export interface FavOptions {
  /** For how many elements to make it; their number if 0. */
  capacity?: number
  /** 0.01 by default. */
  errorRate?: number
  /** 7 by default. */
  regionSize?: number
  /** 0 by default. */
  seed?: number | bigint
}

export class Fav {
  private constructor()

  /** A filter from its bytes: `filter::bytea` in SQL. NULL is the empty filter. */
  static open(bytes: Uint8Array | ArrayBuffer | null): Promise<Fav>

  /** A filter of exactly the right size for these elements: `fav_agg` in SQL. */
  static from(ids: Iterable<Element>, options?: FavOptions): Promise<Fav>

  /** Is the element in the filter? */
  has(id: Element): boolean

  /** Those that are *not* in the filter, in order. */
  filter<T extends Element>(ids: Iterable<T>): T[]
  filter<T>(items: Iterable<T>, idOf: (item: T) => Element): T[]

  add(...ids: Element[]): this

  /** Remove elements that were added, and only these. */
  remove(...ids: Element[]): this

  /** From now on these elements are absent, whether they were added or not. */
  exclude(...ids: Element[]): this

  /** The number of elements: exact up to 128, then an estimate. */
  readonly count: number

  /** null while the filter is empty. */
  readonly kind: Kind | null

  /** The bytes of the filter, for `Fav.open` or `$1::bytea::fav`. */
  bytes(): Uint8Array
}
